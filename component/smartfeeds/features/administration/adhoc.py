"""The ad-hoc commands of administration."""

from smartfeeds.features.administration import (
    adhoc_consumers,
    adhoc_nodes,
    adhoc_people,
    adhoc_process,
    adhoc_users,
)
from smartfeeds.xmpp.side import XmppSide

XMPP = XmppSide(
    commands=(
        *adhoc_nodes.COMMANDS,
        *adhoc_people.COMMANDS,
        *adhoc_consumers.COMMANDS,
        *adhoc_process.COMMANDS,
        *adhoc_users.COMMANDS,
    )
)
