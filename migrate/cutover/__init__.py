"""A cut-over in one command: a spec, steps that can stop anywhere and go on, a record.

The rooms: ``spec`` (what is to happen), ``night`` (the world as it is), ``check``, ``stop`` and
``start`` (what the steps do), ``steps`` (their table), ``going_back``, ``record`` (what is kept of
it), joined by ``run``.
"""
