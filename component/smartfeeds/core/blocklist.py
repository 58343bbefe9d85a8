"""The addresses that may not use the service, or that only may use it (XEP-0133 sections 4.10 and 4.11; OPS-061)."""

from enum import Enum
from typing import Final

from smartfeeds.core.jid import parse_jid
from smartfeeds.errors import ConfigError

# The start of an entry for an erased person, which has a salted digest in place of the JID.
DIGEST_PREFIX: Final = "digest:"


class ListKind(Enum):
    """DENY: addresses that may not use the service. ALLOW: if it has entries, only they may use the service."""

    DENY = "deny"
    ALLOW = "allow"


class Refusal(Enum):
    """The reason for which a user may not use the service."""

    DENIED = "this address may not use the service"
    NOT_ALLOWED = "only addresses on the list of the operator may use the service"
    ERASING = "the data of this address is being erased"


def list_entry(text: str) -> str:
    """Returns a bare JID or a domain in the form of the list. Raises ConfigError."""
    jid = parse_jid(text.strip())
    if jid is None or jid.resource:
        raise ConfigError(f"{text!r} is neither a bare JID nor a domain; name it like alice@example.org or example.org")
    return str(jid)
