"""Shards: how the work of a service is divided (docs/scaling.md).

Each feed, and each piece of background work, belongs to one of `SHARDS` shards. A shard has one owner at a time. Sticky
shards are cheaper than a lock for each delivery, and 64 locks fit into the lock table of every database server. All
processes of a database must divide the work alike, also two versions during an upgrade, so the functions must not
change.
"""

import zlib
from typing import Final

SHARDS: Final = 64
ALL_SHARDS: Final = frozenset(range(SHARDS))


def shard_of_node(node_no: int) -> int:
    """Returns the shard of a feed."""
    return node_no % SHARDS


def shard_of_name(name: str) -> int:
    """Returns the shard of background work. Python's `hash` of a text differs between processes; this is the same."""
    return zlib.crc32(name.encode()) % SHARDS
