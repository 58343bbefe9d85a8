"""The table of the ad-hoc commands. A new command is a module with a `Command`, and its line here."""

from collections.abc import Mapping

from smartfeeds.xmpp.admin_consumers import LIST_CONSUMERS, RETRY_CONSUMERS
from smartfeeds.xmpp.admin_mirrors import ADD_MIRROR, LIST_MIRRORS, REMOVE_MIRROR, RESTART_MIRROR
from smartfeeds.xmpp.admin_nodes import CONFIGURE_NODE, CREATE_NODE, DELETE_NODE, LIST_NODES
from smartfeeds.xmpp.admin_people import LIST_AFFILIATIONS, LIST_SUBSCRIPTIONS, SET_AFFILIATIONS, SET_SUBSCRIPTIONS
from smartfeeds.xmpp.admin_process import ANNOUNCE, CANCEL_STOP, LOG_LEVEL, RESTART, SHUTDOWN, STATISTICS
from smartfeeds.xmpp.admin_tokens import ADD_TOKEN, LIST_TOKENS, REVOKE_TOKEN
from smartfeeds.xmpp.authorization import GET_PENDING
from smartfeeds.xmpp.commands import Command, table_of
from smartfeeds.xmpp.conflict_command import CONFLICTS

# In the order in which clients show them.
COMMANDS: Mapping[str, Command] = table_of(
    CONFLICTS,
    GET_PENDING,
    LIST_NODES,
    CREATE_NODE,
    CONFIGURE_NODE,
    DELETE_NODE,
    LIST_AFFILIATIONS,
    SET_AFFILIATIONS,
    LIST_SUBSCRIPTIONS,
    SET_SUBSCRIPTIONS,
    ADD_TOKEN,
    LIST_TOKENS,
    REVOKE_TOKEN,
    LIST_MIRRORS,
    ADD_MIRROR,
    REMOVE_MIRROR,
    RESTART_MIRROR,
    LIST_CONSUMERS,
    RETRY_CONSUMERS,
    STATISTICS,
    LOG_LEVEL,
    ANNOUNCE,
    SHUTDOWN,
    RESTART,
    CANCEL_STOP,
)
