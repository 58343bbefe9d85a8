"""The addresses of incoming IQs, parsed once, and the attributes of their responses (xep-map 6 to 8, 12, 21)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from lxml import etree

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.text import attribute

# Most senders and most of our addresses repeat. Longer addresses are not cached, so that nobody can fill the memory
# with them.
_CACHED = 2_048
_CACHED_CHARACTERS = 256

StanzaAttributes = Mapping[str, str] | etree._Element


@dataclass(frozen=True, slots=True)
class StanzaAddress:
    """An address of a stanza: parsed, the texts of its full and its bare form, and its bytes as an attribute of the
    response."""

    jid: Jid
    full: str
    bare: str
    written: bytes


@dataclass(frozen=True, slots=True)
class IncomingIq:
    """An IQ that requires a response. `head` is the id and the addresses of the response, as attributes.

    `about` is the part of the request that an error response repeats.
    """

    sender: StanzaAddress
    address: StanzaAddress
    head: bytes
    about: bytes = b""


def own_spelling(text: str, domain: str) -> str:
    """Returns an address of ours with the domain as in the handshake, for the `from` of a response.

    Responses repeat an address as the peer wrote it. But the server ends the link for a `from` of another domain
    (XEP-0114 section 3), and `FEEDS.example.org` is one for some servers. Other addresses are returned unchanged.
    """
    if text.partition("/")[0].rpartition("@")[2] == domain:
        return text
    jid = parse_jid(text)
    return str(jid) if jid is not None and jid.domain == domain else text


class AddressReader:
    """Reads the addresses of stanzas to the component of a domain."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        # Caches of the object, because the domain decides which addresses are ours. Two, because a key of one text is
        # found twice as fast as a key of two values.
        self._known_sender = lru_cache(_CACHED)(partial(self._read, own=False))
        self._known_own = lru_cache(_CACHED)(partial(self._read, own=True))

    def sender(self, stanza: StanzaAttributes) -> StanzaAddress | None:
        """Returns the sender, or None if the address is missing or malformed, so that no response could reach it."""
        text = stanza.get("from") or ""
        return self._known_sender(text) if len(text) <= _CACHED_CHARACTERS else self._read(text, own=False)

    def own(self, stanza: StanzaAttributes) -> StanzaAddress | None:
        """Returns our address, by default the domain. None for the address of a foreign domain."""
        text = stanza.get("to") or self._domain
        return self._known_own(text) if len(text) <= _CACHED_CHARACTERS else self._read(text, own=True)

    def read(self, stanza: StanzaAttributes) -> IncomingIq | None:
        """Returns the IQ, or None if no response could reach its sender."""
        stanza_id = stanza.get("id")
        # As `sender` and `own`, without two calls for each request.
        text, own = stanza.get("from") or "", stanza.get("to") or self._domain
        if len(text) <= _CACHED_CHARACTERS and len(own) <= _CACHED_CHARACTERS:
            sender, address = self._known_sender(text), self._known_own(own)
        else:
            sender, address = self.sender(stanza), self.own(stanza)
        if not stanza_id or sender is None or address is None:
            return None
        head = b" id='%b' from='%b' to='%b'" % (attribute(stanza_id).encode(), address.written, sender.written)
        return IncomingIq(sender, address, head)

    def _read(self, text: str, *, own: bool) -> StanzaAddress | None:
        jid = parse_jid(text)
        if jid is None or (own and jid.domain != self._domain):
            return None
        if own:
            text = own_spelling(text, self._domain)
        return StanzaAddress(jid, str(jid), jid.bare_text, attribute(text).encode())
