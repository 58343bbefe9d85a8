"""The XMPP side of the kernel: the ad-hoc commands of each module."""

from smartfeeds.features.attachments.names import ATTACHMENTS
from smartfeeds.features.mirrors import adhoc as admin_mirrors
from smartfeeds.features.polling import adhoc as admin_sources
from smartfeeds.features.privacy import adhoc as admin_blocks
from smartfeeds.xmpp import authorization
from smartfeeds.xmpp.side import XmppSide

KERNEL = XmppSide(
    commands=(
        *authorization.COMMANDS,
        *admin_mirrors.COMMANDS,
        *admin_sources.COMMANDS,
        *admin_blocks.COMMANDS,
    ),
    features=(ATTACHMENTS,),
)
