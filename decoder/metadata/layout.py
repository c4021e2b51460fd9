"""The supported versions of ``_metadata``, and their differences.

Source: org.apache.flink.runtime.checkpoint.metadata.MetadataV{2,3,4,5,6}Serializer @ Flink 2.2.0.
"""

from __future__ import annotations

from typing import NamedTuple

# org.apache.flink.runtime.checkpoint.Checkpoints.HEADER_MAGIC_NUMBER @ 2.2.0
MAGIC = 0x4960672D
# MetadataV2V3SerializerBase.MASTER_STATE_MAGIC_NUMBER @ 2.2.0, as a signed i32
MASTER_STATE_MAGIC = 0xC96B1696 - (1 << 32)


class MetadataLayout(NamedTuple):
    """A version of ``_metadata`` and its optional parts."""

    version: int
    written_by: str  # the Flink releases that write this version by default
    # coordinator state, channel state, and finished operators and subtasks
    since_1_11: bool
    properties: bool  # a Java object stream of CheckpointProperties after the body
    names: bool  # operator name and uid before the operator ID
    typed_channel_handles: bool  # a type byte before each channel-state handle


LAYOUTS = {
    layout.version: layout
    for layout in (
        MetadataLayout(2, "Flink 1.3 to 1.10", False, False, False, False),
        MetadataLayout(3, "Flink 1.11 to 1.15", True, False, False, False),
        MetadataLayout(4, "Flink 1.16 to 1.20", True, True, False, False),
        MetadataLayout(5, "Flink 2.0", True, True, True, False),
        MetadataLayout(6, "Flink 2.1 and later", True, True, True, True),
    )
}
