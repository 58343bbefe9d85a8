"""The XMPP side of the kernel: the ad-hoc commands of each module."""

from smartfeeds.features.mirrors import adhoc as admin_mirrors
from smartfeeds.features.polling import adhoc as admin_sources
from smartfeeds.xmpp import authorization
from smartfeeds.xmpp.side import XmppSide

KERNEL = XmppSide(
    commands=(
        *authorization.COMMANDS,
        *admin_mirrors.COMMANDS,
        *admin_sources.COMMANDS,
    ),
)
