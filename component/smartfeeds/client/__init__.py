"""The public client: publishes to feeds over XMPP, reads every change of a feed, and proves that none is missing.

from smartfeeds.client import connect, connect_blocking, follow

`connect` is for programs with asyncio, `connect_blocking` for all others, and `follow` for one feed only.
`docs/bots.md` describes how to write a bot with them.
"""

from smartfeeds.client.blocking import BlockingFeedClient, BlockingFollower, connect_blocking
from smartfeeds.client.change import Atom, Change, ChangeKind
from smartfeeds.client.entry import EntryTexts
from smartfeeds.client.errors import (
    CertificateError,
    FollowError,
    LoginError,
    NodeMissingError,
    PositionRefusedError,
    RefusedError,
    UnreachableError,
)
from smartfeeds.client.feed_client import FeedClient, connect
from smartfeeds.client.follow import Follower, Proof, follow
from smartfeeds.client.position import FileStore, PositionStore
from smartfeeds.client.transport import ClientLink, ConnectOptions, SlixLink
from smartfeeds.core.feed_address import AddressError, FeedAddress, parse_address

__all__ = [
    "AddressError",
    "Atom",
    "BlockingFeedClient",
    "BlockingFollower",
    "CertificateError",
    "Change",
    "ChangeKind",
    "ClientLink",
    "ConnectOptions",
    "EntryTexts",
    "FeedAddress",
    "FeedClient",
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
    "UnreachableError",
    "connect",
    "connect_blocking",
    "follow",
    "parse_address",
]
