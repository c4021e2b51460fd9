"""A cut-over: stop a Flink job and start its target, step by step.

Each step observes, decides, and acts. A run after a crash therefore continues at the step that the
last run did not finish.

``spec`` is the input, and ``record`` is the output. ``observe`` reads the ``facts``.
``target_state`` derives the contents of the target from the facts, and ``decide`` chooses the next
action. Both do no I/O. ``steps`` lists the steps and actions. ``run`` executes the steps, and
``roll_back`` undoes the write.
"""
