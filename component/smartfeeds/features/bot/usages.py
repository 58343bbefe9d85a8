"""How the commands are written that answers offer as a next step. The table in `commands` has all commands."""

from smartfeeds.texts import N_

HELP = N_("help [COMMAND]")
LIST = N_("list [PAGE]")
SHOW = N_("show FEED [FILTER=VALUE]")
LATEST = N_("latest [FEED] [NUMBER]")
SUBSCRIBE = N_("subscribe FEED [FILTER=VALUE]")
UNSUBSCRIBE = N_("unsubscribe FEED")
SUBSCRIPTIONS = N_("subscriptions")
DELETE = N_("delete FEED")
CONFLICTS = N_("conflicts FEED")
LOGIN = N_("login CODE")
SETTLE = N_("settle FEED [CODE] [NUMBER] [TEXT]")
ALLOW = N_("allow FEED ADDRESS")
REFUSE = N_("refuse FEED ADDRESS")
FOLLOW = N_("follow ADDRESS [NAME]")
UNFOLLOW = N_("unfollow FEED")
OUTLINE = N_("outline FEED")
MOVE = N_("move FEED CODE DIRECTION")
