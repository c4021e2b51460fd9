"""The ``_metadata`` file: the operators of a checkpoint, and the handles of their state.

``parse`` reads the file to its last byte into ``model``: ``layout`` has the differences between
versions, ``handles`` reads the handles of state, ``properties`` the type of checkpoint at the end.
"""
