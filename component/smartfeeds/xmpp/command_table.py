"""The XMPP side of the kernel: the ad-hoc commands of each module."""

from smartfeeds.features.accounts import adhoc as admin_tokens
from smartfeeds.features.administration import adhoc_consumers as admin_consumers
from smartfeeds.features.administration import adhoc_nodes as admin_nodes
from smartfeeds.features.administration import adhoc_people as admin_people
from smartfeeds.features.administration import adhoc_process as admin_process
from smartfeeds.features.administration import adhoc_users as admin_users
from smartfeeds.features.administration import adhoc_work as admin_work
from smartfeeds.features.attachments.names import ATTACHMENTS
from smartfeeds.features.mirrors import adhoc as admin_mirrors
from smartfeeds.features.polling import adhoc as admin_sources
from smartfeeds.features.privacy import adhoc as admin_blocks
from smartfeeds.xmpp import authorization
from smartfeeds.xmpp.side import XmppSide

KERNEL = XmppSide(
    commands=(
        *authorization.COMMANDS,
        *admin_nodes.COMMANDS,
        *admin_people.COMMANDS,
        *admin_tokens.COMMANDS,
        *admin_mirrors.COMMANDS,
        *admin_sources.COMMANDS,
        *admin_consumers.COMMANDS,
        *admin_process.COMMANDS,
        *admin_work.COMMANDS,
        *admin_blocks.COMMANDS,
        *admin_users.COMMANDS,
    ),
    features=(ATTACHMENTS,),
)
