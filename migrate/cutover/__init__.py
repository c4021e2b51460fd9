"""A cut-over in one command. Each step observes, decides and acts, also in a run after a crash.

``spec`` describes what to do, ``record`` what was done. ``observe`` reads the ``facts``.
``target_state`` derives from the facts what the target holds, and ``decide`` chooses the next
action; both are pure. ``steps`` lists the steps, and the function of each action. ``run`` executes
the steps, and ``roll_back`` removes the target again.
"""
