"""A person whose data is exported or erased: where a text names the bare JID, in every encoding that is stored.

A match ends at the bounds of an address: `bob@example.org` is not in `kbob@example.org` or `bob@example.org.uk`. Texts
that are an address, and endpoints, are parsed: local parts may contain almost every sign that is a bound in a text.
"""

import hashlib
import re
from functools import cached_property
from typing import Final
from urllib.parse import quote, unquote

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.errors import ConfigError

# Percent-encodings of percent-encodings: an address in a node name, in the address of that node, in an endpoint.
_MOST_ENCODINGS: Final = 4
# An encoded character before a match, such as %2F or %252F, and behind it. `_is_bound` decodes it: %C3%A9 is a letter.
_ENCODED: Final = r"(?:%(?:25){0,3}[0-9a-f]{2}){1,4}"
_ENCODED_BEFORE: Final = re.compile(rf"{_ENCODED}\Z", re.IGNORECASE)
_ENCODED_AFTER: Final = re.compile(_ENCODED, re.IGNORECASE)
_ENCODED_CHARACTERS: Final = 36  # of four bytes, each encoded four times
# Three look-behinds, because one of Python has a fixed width.
_START: Final = r"(?:(?<![\w.+-])|(?<=%[0-9a-f]{2})|(?<=%25[0-9a-f]{2})|(?<=%2525[0-9a-f]{2}))"
# The suffixes of documents and common files do not continue a domain: `alice@example.org.png` names the person.
_SUFFIX: Final = r"(?:atom|rss|opml|json|xml|html?|txt|md|pdf|csv|vcf|ics|png|jpe?g|gif|webp|avif|svg|mp[34]|og[ga])\b"
# A hyphen continues a domain of one label, and one with a dot behind the hyphen: ids such as `JID-1` name the person.
_END: Final = rf"(?!\w|\.(?!{_SUFFIX})\w|-[\w-]+\.(?!{_SUFFIX})\w)"
_END_OF_LABEL: Final = rf"(?![\w-]|\.(?!{_SUFFIX})\w)"


class Person:
    """A bare JID with a local part. Raises ConfigError for any other text."""

    def __init__(self, text: str) -> None:
        jid = parse_jid(text)
        if jid is None or jid.resource or not jid.local:
            raise ConfigError(f"{text!r} is not the bare JID of a person; name it like alice@example.org")
        self.address: Jid = jid
        self.jid = str(jid)

    @property
    def _escaped(self) -> str:
        """The local part of the person's address at a gateway (XEP-0106)."""
        return self.jid.replace("@", "\\40")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        spellings = [self.jid]
        for _ in range(_MOST_ENCODINGS):
            spellings.append(quote(spellings[-1], safe=""))
        spellings.append(self._escaped)
        alternatives = "|".join(re.escape(spelling) for spelling in dict.fromkeys(spellings))
        end = _END if "." in self.address.domain else _END_OF_LABEL
        return re.compile(f"{_START}(?:{alternatives}){end}", re.IGNORECASE)

    @cached_property
    def hint(self) -> str:
        """A lower-case ASCII text that is part of every spelling, empty if there is none. Searches use it first."""
        local = self.jid.partition("@")[0]
        return local if local.isascii() and quote(local, safe="") == local else ""

    def is_in(self, data: str | bytes) -> bool:
        """Returns whether a text names the JID."""
        if isinstance(data, bytes):
            if self.hint and self.hint.encode() not in data.lower():
                return False
            data = data.decode("utf-8", "replace")
        return any(_is_bound(match) for match in self._pattern.finditer(data))

    def replaced(self, text: str, by: str) -> str:
        """Returns a text with another address in place of the JID."""
        return self._pattern.sub(lambda match: by if _is_bound(match) else match[0], text)

    def spellings_in(self, data: str | bytes) -> list[str]:
        """Returns the spellings in which a text names the JID, each once, without the text around them."""
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return list(dict.fromkeys(match[0] for match in self._pattern.finditer(text) if _is_bound(match)))

    def has_address(self, text: str) -> bool:
        """Returns whether a text is the JID, with or without a resource."""
        jid = parse_jid(text)
        return jid is not None and jid.bare == self.address

    def is_endpoint(self, by: str) -> bool:
        """Returns whether an endpoint of a history is the person at a service: `SERVICE/JID`, percent-encoded.

        Other services write endpoints in their own forms. If an endpoint has no JID at all, a text that names the
        person is enough.
        """
        text = by
        for _ in range(_MOST_ENCODINGS + 1):
            # A local part may contain "%2F", so nothing is an address before the endpoint is divided.
            parts = text.split("/") if "/" in text or "%" not in text else []
            jids = [jid for part in parts if (jid := _jid_in(part)) is not None]
            if jids:
                return any(jid == self.address or jid.local == self._escaped for jid in jids)
            text = unquote(text)
        return self.is_in(by)

    def digest(self, salt: bytes) -> bytes:
        """Returns the salted digest by which the service recognises the JID after its erasure (OPS-028)."""
        return hashlib.blake2b(self.jid.encode(), key=salt[:64], digest_size=32).digest()


def _jid_in(text: str) -> Jid | None:
    """Returns the bare JID of a person that a part of an endpoint is, without the scheme and the query of its URI."""
    local, at, domain = text.rpartition("@")
    jid = parse_jid(f"{local.removeprefix('xmpp:')}@{re.split('[?#;,]', domain)[0]}") if at else None
    return jid.bare if jid is not None else None


def _is_bound(match: "re.Match[str]") -> bool:
    """Returns whether the percent-encoded characters around a match, if there are any, are no letters or digits."""
    text, start, end = match.string, match.start(), match.end()
    before = _ENCODED_BEFORE.search(text, max(0, start - _ENCODED_CHARACTERS), start)
    after = _ENCODED_AFTER.match(text, end, end + _ENCODED_CHARACTERS)
    return not (
        (before is not None and _continues(_decoded(before[0])[-1:], "_.+-"))
        or (after is not None and _continues(_decoded(after[0])[:1], "_"))
    )


def _continues(character: str, signs: str) -> bool:
    return character.isalnum() or character in signs


def _decoded(text: str) -> str:
    for _ in range(_MOST_ENCODINGS):
        text = unquote(text)
    return text
