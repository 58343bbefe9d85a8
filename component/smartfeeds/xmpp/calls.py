"""The addresses of incoming IQs, parsed once, and the attributes of their responses (xep-map 6 to 8, 12, 21)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.text import attribute

# Longer addresses are not cached, so that nobody can fill the memory with them.
_CACHED_CHARACTERS = 256


class StanzaAttributes(Protocol):
    """The attributes of a stanza, as an element or a mapping."""

    def get(self, key: str, /) -> str | None:
        """Returns the value of an attribute, or None if it is absent."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """The address of a peer: parsed, its bare form, and its bytes as an attribute value, spelt as received."""

    jid: Jid
    bare: Jid
    written: bytes


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address of the component that a stanza was sent to: its bare text, and its bytes as an attribute value."""

    bare: str
    written: bytes


@dataclass(frozen=True, slots=True)
class IncomingIq:
    """An IQ that requires a response. `head` is the id and the addresses of the response, as attributes.

    `about` is the part of the request that an error response repeats.
    """

    sender: PeerAddress
    address: OwnAddress
    head: bytes
    about: bytes = b""


class AddressReader:
    """Reads the addresses of stanzas. Most senders and most of our addresses repeat, so the newest are cached."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        # One cache per object: whether an address is ours depends on the domain.
        self._known_sender = lru_cache(2_048)(_read_sender)
        self._known_own = lru_cache(512)(self._read_own)

    def sender(self, stanza: StanzaAttributes) -> PeerAddress | None:
        """Returns the sender, or None if the address is missing or malformed, so that no response could reach it."""
        text = stanza.get("from") or ""
        return self._known_sender(text) if len(text) <= _CACHED_CHARACTERS else _read_sender(text)

    def own(self, stanza: StanzaAttributes) -> OwnAddress | None:
        """Returns our address, by default the domain. None for the address of a foreign domain."""
        text = stanza.get("to") or self._domain
        return self._known_own(text) if len(text) <= _CACHED_CHARACTERS else self._read_own(text)

    def read(self, stanza: StanzaAttributes) -> IncomingIq | None:
        """Returns the IQ, or None if no response could reach its sender."""
        stanza_id = stanza.get("id")
        sender, address = self.sender(stanza), self.own(stanza)
        if not stanza_id or sender is None or address is None:
            return None
        head = b" id='%b' from='%b' to='%b'" % (attribute(stanza_id).encode(), address.written, sender.written)
        return IncomingIq(sender, address, head)

    def _read_own(self, text: str) -> OwnAddress | None:
        jid = parse_jid(text)
        if jid is None or jid.domain != self._domain:
            return None
        # Responses come from the address as the peer wrote it. The domain must be spelt as in the handshake, because
        # the server ends the link for a `from` of another domain (XEP-0114 section 3).
        spelling = text if text.partition("/")[0].rpartition("@")[2] == self._domain else str(jid)
        return OwnAddress(str(jid.bare), attribute(spelling).encode())


def _read_sender(text: str) -> PeerAddress | None:
    jid = parse_jid(text)
    return None if jid is None else PeerAddress(jid, jid.bare, attribute(text).encode())
