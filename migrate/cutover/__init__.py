"""A cut-over: stop a Flink job and start its target, step by step.

Each step observes, decides and acts. So a run after a crash continues where the last run stopped.

``spec`` is the input, ``record`` the output. ``observe`` reads the ``facts``. ``target_state``
derives from the facts what the target holds, and ``decide`` chooses the next action; these two do
no I/O. ``steps`` lists the steps and the function of each action. ``run`` executes the steps, and
``roll_back`` undoes what was written to the target.
"""
