"""The public follower: reads every change of one feed over XMPP and proves that none is missing.

from smartfeeds.client import follow

async for change in follow("xmpp:feeds.example?;node=comments", jid=..., password=..., store="position"):
    ...

`docs/bots.md` describes how to write a bot with it.
"""

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
from smartfeeds.client.position import FileStore, PositionStore
from smartfeeds.client.transport import ClientLink, SlixLink
from smartfeeds.core.feed_address import AddressError, FeedAddress, parse_address

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
    "NodeMissingError",
    "PositionRefusedError",
    "PositionStore",
    "Proof",
    "RefusedError",
    "SlixLink",
    "follow",
    "parse_address",
]
