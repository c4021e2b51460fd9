"""A cut-over: stop a Flink job and start its target, step by step.

Each step observes, decides and acts, so a run after a crash continues where the last one stopped.

``spec`` is the input, ``record`` the output. ``observe`` reads the ``facts``. ``target_state``
derives from them what the target holds, and ``decide`` chooses the next action, both without I/O.
``steps`` lists the steps and actions. ``run`` executes them, and ``roll_back`` undoes the write.
"""
