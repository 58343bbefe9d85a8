"""XMPP addresses: parsing, the bare form, comparison (RFC 6122; xep-map 20, 21)."""

import re
from dataclasses import dataclass, field

from smartfeeds.core.stringprep import nameprep, nodeprep, resourceprep

PART_LIMIT_BYTES = 1023  # RFC 6122 section 2.1
# The form of an address as a regular expression, for schemas. Every address matches. `parse_jid` rejects more texts.
JID_PATTERN = r"([^\"&'/:<>@\u0000-\u0020\u007f]+@)?[^\"&'/<>@\u0000-\u0020\u007f]+(/[^\u0000-\u001f\u007f]+)?"
_LOCAL_FORBIDDEN = re.compile(r"[\"&'/:<>@\s\x00-\x1f\x7f]")
_DOMAIN_FORBIDDEN = re.compile(r"[\"&'/<>@\s\x00-\x1f\x7f]")
_RESOURCE_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Jid:
    """An address in the form in which hosts compare it (`core.stringprep`).

    `bare_text` is the text of the bare form. Every request needs it several times, so it is made once.
    """

    local: str
    domain: str
    resource: str = ""
    bare_text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bare_text", f"{self.local}@{self.domain}" if self.local else self.domain)

    def __str__(self) -> str:
        return f"{self.bare_text}/{self.resource}" if self.resource else self.bare_text

    @property
    def bare(self) -> "Jid":
        """The same address without its resource."""
        return Jid(self.local, self.domain) if self.resource else self


# The actor of a request without credentials. Nobody can own this domain (RFC 2606).
ANONYMOUS = Jid("", "anonymous.invalid")


def parse_jid(text: str) -> Jid | None:
    """Returns an address, or None if it is malformed. All spellings of an address give equal values."""
    rest, slash, resource = text.partition("/")
    local, at, domain = rest.rpartition("@")
    # As Prosody does: preparing a long text would stall the event loop.
    if max(len(local), len(domain), len(resource)) > PART_LIMIT_BYTES:
        return None
    if text.isascii():
        # What the profiles map in ASCII, without their tables. The patterns below prohibit the rest (a test compares
        # both ways).
        local, domain = local.lower(), domain.lower()
    else:
        prepared = nodeprep(local), nameprep(domain), resourceprep(resource)
        if None in prepared:
            return None
        local, domain, resource = (part or "" for part in prepared)
    domain = domain.removesuffix(".")
    empty = (at and not local) or "" in domain.split(".") or (slash and not resource)
    forbidden = (
        _LOCAL_FORBIDDEN.search(local) or _DOMAIN_FORBIDDEN.search(domain) or _RESOURCE_FORBIDDEN.search(resource)
    )
    if empty or forbidden:
        return None
    # Preparing makes a text longer, and a character may have several bytes.
    if not text.isascii() and any(
        len(part.encode("utf-8", "surrogatepass")) > PART_LIMIT_BYTES for part in (local, domain, resource)
    ):
        return None
    return Jid(local, domain, resource)
