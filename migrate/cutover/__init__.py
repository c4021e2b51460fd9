"""A cut-over in one command: observe, decide, act; again for each step, and after a crash.

``spec`` holds what to do, ``record`` what was done. ``observe`` reads the ``facts``. ``decide``
chooses the next action by them and by ``target_state``, both pure. ``steps`` is the table of both,
``run`` goes through it, and ``roll_back`` undoes it.
"""
