"""The addresses that may not use the service, or that only may use it (XEP-0133 sections 4.10 and 4.11; OPS-061)."""

from enum import Enum
from typing import Final

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.stringprep import nameprep
from smartfeeds.errors import ConfigError

# The start of an entry for an erased person, which has a salted digest in place of the JID.
DIGEST_PREFIX: Final = "digest:"
_ACE: Final = "xn--"  # the start of a label with other letters in ASCII (RFC 5890 section 2.3.2.1)


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
    if "*" in jid.domain:
        # No domain has an asterisk, and the operator would believe that the entry matches.
        raise ConfigError(
            f"{text!r} has a wildcard; add each domain, and each of its subdomains, as an entry of its own"
        )
    return str(jid)


def same_addresses(jid: Jid) -> tuple[Jid, ...]:
    """Returns an address, and the address with the other spellings of an internationalised domain.

    RFC 7622 section 3.2 wants letters, but a server may also prove that it is the same domain in ASCII. The service
    answers at the address that the server uses, so the two are different users, and an entry must match both.
    """
    labels = jid.domain.split(".")
    domains = (jid.domain, ".".join(map(_letters, labels)), ".".join(map(_ace, labels)))
    return tuple(Jid(jid.local, domain, jid.resource) for domain in dict.fromkeys(domains))


def _letters(label: str) -> str:
    if not label.startswith(_ACE):
        return label
    try:
        text = label.removeprefix(_ACE).encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    # Another text has a spelling of its own: its domain is not the one that these letters name.
    return text if not text.isascii() and nameprep(text) == text else label


def _ace(label: str) -> str:
    return label if label.isascii() else _ACE + label.encode("punycode").decode("ascii")
