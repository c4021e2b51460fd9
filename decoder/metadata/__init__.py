"""``_metadata``: what a checkpoint holds, and where its state lies.

``layout`` says what differs between versions, ``handles`` reads the handles that point at state,
``properties`` the trailing type, ``parse`` walks the file to its last byte into ``model``.
"""
