"""The ``_metadata`` file, with a checkpoint's operators and the handles of their state.

``parse`` reads the whole file. ``handles`` reads the handles of operator state and skips the
handles of keyed state. ``keyed`` reads the handles of keyed state.
"""
