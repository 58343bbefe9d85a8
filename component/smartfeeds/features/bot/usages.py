"""The spellings of the commands that answers offer as a next step. The table in `commands` has all commands."""

from smartfeeds.chat.commands import SUBSCRIBE as SUBSCRIBE
from smartfeeds.texts import N_

HELP = N_("help [COMMAND]")
LIST = N_("list [PAGE]")
SHOW = N_("show FEED [FILTER=VALUE]")
LATEST = N_("latest [FEED] [NUMBER]")
UNSUBSCRIBE = N_("unsubscribe FEED")
SUBSCRIPTIONS = N_("subscriptions")
DELETE = N_("delete FEED")
ALLOW = N_("allow FEED ADDRESS")
REFUSE = N_("refuse FEED ADDRESS")
ANSWERS = N_("answers on")
OUTLINE = N_("outline FEED")
MOVE = N_("move FEED CODE DIRECTION")
