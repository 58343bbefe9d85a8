"""Words of the same meaning, for suggestions: other programs say `rm` or `delete` where this one says `remove`."""

from collections.abc import Collection
from typing import Final

# Each row begins with the names of commands, of which the first that a group has is suggested.
SYNONYMS: Final = (
    ("sub", "subscription", "subscriptions", "subscribe", "subscriber", "subscribers", "unsubscribe"),
    ("node", "feed", "feeds", "channel", "channels", "topic", "topics"),
    ("item", "entry", "entries", "article", "articles", "message", "messages"),
    ("remove", "drop", "erase", "delete", "del", "rm", "destroy", "unfollow", "unsubscribe"),
    ("show", "status", "info", "get", "view", "describe", "display", "inspect", "details"),
    ("list", "ls", "all", "index"),
    ("add", "create", "new", "make", "insert", "register", "subscribe"),
    ("set", "change", "edit", "modify", "update", "configure", "config", "options"),
    ("publish", "post", "send", "write"),
    ("pause", "stop", "disable", "suspend"),
    ("resume", "enable", "unpause", "continue", "start"),
    ("poll", "now", "fetch", "refresh", "pull", "reload"),
    ("renew", "resubscribe"),
    ("retry", "redeliver", "repeat"),
    ("purge", "clear", "empty", "truncate"),
    ("allow", "grant", "permit"),
    ("deny", "ban", "block", "forbid", "revoke"),
    ("blocklist", "ban", "block", "blacklist", "denylist"),
    ("search", "find", "query", "grep"),
    ("run", "serve", "start", "daemon", "server"),
    ("doctor", "check", "diagnose", "test", "health", "verify"),
    ("init", "setup", "install"),
    ("db", "database", "migrate"),
    ("backup", "dump", "snapshot"),
    ("gdpr", "privacy", "forget"),
    ("token", "key", "keys", "password", "login"),
    ("bench", "benchmark", "measure"),
    ("demo", "try", "example", "tutorial"),
)


def synonym(word: str, known: Collection[str]) -> str:
    """Returns the known word of the same meaning, "" if there is none. The case of letters makes no difference."""
    rows = (row for row in SYNONYMS if word.casefold() in row)
    return next((name for row in rows for name in row if name in known), "")
