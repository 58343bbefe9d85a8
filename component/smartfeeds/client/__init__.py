"""The public follower: proves that it has everything, and gets what it lacks.

from smartfeeds.client import follow

async for change in follow("xmpp:feeds.example?;node=comments", jid=..., password=..., store="position"):
    ...
"""

from smartfeeds.client.address import AddressError, FeedAddress, parse_address
from smartfeeds.client.change import Atom, Change, ChangeKind
from smartfeeds.client.errors import (
    CertificateError,
    FollowError,
    LoginError,
    NodeMissingError,
    PositionRefusedError,
    RefusedError,
)
from smartfeeds.client.follow import Follower, Proof, follow
from smartfeeds.client.position import FileStore, MemoryStore, PositionStore
from smartfeeds.client.transport import ClientLink, SlixLink

__all__ = [
    "AddressError",
    "Atom",
    "CertificateError",
    "Change",
    "ChangeKind",
    "ClientLink",
    "FeedAddress",
    "FileStore",
    "FollowError",
    "Follower",
    "LoginError",
    "MemoryStore",
    "NodeMissingError",
    "PositionRefusedError",
    "PositionStore",
    "Proof",
    "RefusedError",
    "SlixLink",
    "follow",
    "parse_address",
]
