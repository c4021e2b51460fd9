"""A cut-over in one command: observe, decide, act; again for each step, and after a crash.

``spec`` says what is to happen and ``record`` keeps what has. ``observe`` reads the ``facts``.
``steps`` is the table; ``decide_stop`` and ``decide_target`` decide each step, with ``target``,
``beginning``, ``judge`` and ``flink_jobs``: all of them pure. ``act`` names the actions
(``preflight``, ``act_flink``, ``plan_move``, ``act_target``, ``prime``, ``start``), ``going_back``
takes them back, and ``run`` joins it all.
"""
