"""The XMPP side of the kernel: the ad-hoc commands of each module."""

from smartfeeds.xmpp import authorization
from smartfeeds.xmpp.side import XmppSide

KERNEL = XmppSide(
    commands=authorization.COMMANDS,
)
