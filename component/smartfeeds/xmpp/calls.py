"""Who an IQ came from and where to: addresses parsed once, and the head of the answer (xep-map 6 to 8, 12, 21)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.text import attribute

# Longer addresses are read each time, so that nobody can fill the memory with them.
_CACHED_CHARACTERS = 256


class Attributes(Protocol):
    """The attributes of a stanza: an element, or a mapping."""

    def get(self, key: str, /) -> str | None:
        """The value of one, None where it is absent."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The address of a peer: parsed, its bare form, and its bytes as an attribute, spelt as it came."""

    jid: Jid
    bare: Jid
    written: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """An address of ours that a stanza was sent to: its bare text, and its bytes as an attribute."""

    bare: str
    written: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """An IQ that has to be answered: who asked, at which address, and the id and addresses of the answer.

    `about` is what an error repeats of the request.
    """

    sender: Sender
    place: Place
    head: bytes
    about: bytes = b""


class Calls:
    """Reads the addresses of stanzas. Senders repeat and so do our own addresses: the newest are remembered."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._known_sender = lru_cache(2_048)(_read_sender)
        self._known_place = lru_cache(512)(self._read_place)

    def sender(self, stanza: Attributes) -> Sender | None:
        """The sender, or None where there is none that could be answered."""
        text = stanza.get("from") or ""
        return self._known_sender(text) if len(text) <= _CACHED_CHARACTERS else _read_sender(text)

    def place(self, stanza: Attributes) -> Place | None:
        """The address of ours, the domain where none is given; None for a foreign domain."""
        text = stanza.get("to") or self._domain
        return self._known_place(text) if len(text) <= _CACHED_CHARACTERS else self._read_place(text)

    def read(self, stanza: Attributes) -> Call | None:
        """The call that an IQ makes, or None where no answer could reach anybody."""
        stanza_id = stanza.get("id")
        sender, place = self.sender(stanza), self.place(stanza)
        if not stanza_id or sender is None or place is None:
            return None
        head = b" id='%b' from='%b' to='%b'" % (attribute(stanza_id).encode(), place.written, sender.written)
        return Call(sender, place, head)

    def _read_place(self, text: str) -> Place | None:
        jid = parse_jid(text)
        if jid is None or jid.domain != self._domain:
            return None
        # Answers come from the address as it was written, but another spelling of the domain would end the link.
        written = text if text.partition("/")[0].rpartition("@")[2] == self._domain else str(jid)
        return Place(str(jid.bare), attribute(written).encode())


def _read_sender(text: str) -> Sender | None:
    jid = parse_jid(text)
    return None if jid is None else Sender(jid, jid.bare, attribute(text).encode())
