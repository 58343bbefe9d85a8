"""What the kernel and all features do over XMPP and HTTP, joined."""

from typing import Any

from smartfeeds.features import FEATURES
from smartfeeds.http.side import HttpSide
from smartfeeds.xmpp.command_table import KERNEL
from smartfeeds.xmpp.side import XmppSide, joined


def xmpp_side() -> XmppSide:
    """Returns what the kernel and all features do over XMPP."""
    return joined([KERNEL, *(feature.xmpp() for feature in FEATURES if feature.xmpp is not None)])


def http_sides() -> list[HttpSide[Any]]:
    """Returns what the features serve over HTTP."""
    return [feature.http() for feature in FEATURES if feature.http is not None]
