"""The ``_metadata`` file: the operators of a checkpoint, and the handles of their state.

``parse`` reads the whole file. ``handles`` reads the handles of operator state and skips those of
keyed state, which ``keyed`` reads.
"""
