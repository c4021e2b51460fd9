"""The ``_metadata`` file: the operators of a checkpoint, and the handles of their state.

``parse`` reads the whole file and returns the classes of ``model``. ``layout`` describes the
differences between versions. ``handles`` reads the handles of operator state and skips those of
keyed state, which ``keyed`` reads. ``properties`` reads the checkpoint's type, which is at the end
of the file.
"""
