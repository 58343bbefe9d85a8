"""A person whose data is exported or erased: where a text names the bare JID, in every encoding that is stored.

A match ends at the bounds of an address: `bob@example.org` is not in `kbob@example.org` or `bob@example.org.uk`. Texts
that are an address, and endpoints, are parsed: local parts may contain almost every sign that is a bound in a text.

Some texts have two readings. In `post_bob@example.org` the address may be that of Bob behind a sign, or that of another
user. `is_in` says no, because data of others must stay. `may_be_in` says yes, for data that is known to be
Bob's anyway.
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
# An encoded character before a match, such as %2F or %252F, and behind it. `_Bounds` decodes it: %C3%A9 is a letter.
_ENCODED: Final = r"(?:%(?:25){0,3}[0-9a-f]{2}){1,4}"
_ENCODED_BEFORE: Final = re.compile(rf"{_ENCODED}\Z", re.IGNORECASE)
_ENCODED_AFTER: Final = re.compile(_ENCODED, re.IGNORECASE)
_ENCODED_CHARACTERS: Final = 36  # of four bytes, each encoded four times
_DECODED_CHARACTERS: Final = 256  # behind an address: a label of a domain has up to 63
# Three look-behinds, because one of Python has a fixed width.
_BEHIND_CODE: Final = r"(?<=%[0-9a-f]{2})|(?<=%25[0-9a-f]{2})|(?<=%2525[0-9a-f]{2})"
_START: Final = rf"(?:(?<![\w.+-])|{_BEHIND_CODE})"
# The suffixes of documents and common files do not continue a domain: `alice@example.org.png` names the person.
_SUFFIX: Final = r"(?:atom|rss|opml|json|xml|html?|txt|md|pdf|csv|vcf|ics|png|jpe?g|gif|webp|avif|svg|mp[34]|og[ga])\b"
# A hyphen continues a domain of one label, and one with a dot behind the hyphen: ids such as `JID-1` name the person.
_END: Final = rf"(?!\w|\.(?!{_SUFFIX})\w|-[\w-]+\.(?!{_SUFFIX})\w)"
_END_OF_LABEL: Final = rf"(?![\w-]|\.(?!{_SUFFIX})\w)"
# The bounds of the reading in which a sign joins the address to the text around it. Letters and digits still continue
# an address, and so does a domain with more labels. No domain ends with a number (RFC 3696 section 2).
_LOOSE_START: Final = rf"(?:(?<![^\W_])|{_BEHIND_CODE})"
_LOOSE_END: Final = rf"(?![^\W_]|\.(?!{_SUFFIX}|\d+(?![\w.-]))\w|[-_][\w-]*\.(?!{_SUFFIX})\w)"


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
    def _spellings(self) -> str:
        spellings = [self.jid]
        for _ in range(_MOST_ENCODINGS):
            spellings.append(quote(spellings[-1], safe=""))
        spellings.append(self._escaped)
        return "|".join(re.escape(spelling) for spelling in dict.fromkeys(spellings))

    @cached_property
    def _certain(self) -> "_Bounds":
        """The bounds of texts that name the person in every reading."""
        return _Bounds(self._spellings, _START, _END if "." in self.address.domain else _END_OF_LABEL, "_.+-")

    @cached_property
    def _possible(self) -> "_Bounds":
        """The bounds of texts that name the person in one reading."""
        return _Bounds(self._spellings, _LOOSE_START, _LOOSE_END, "")

    @cached_property
    def hint(self) -> str:
        """A lower-case ASCII text that is part of every spelling, empty if there is none. Searches use it first."""
        local = self.jid.partition("@")[0]
        return local if local.isascii() and quote(local, safe="") == local else ""

    def is_in(self, data: str | bytes) -> bool:
        """Returns whether a text names the JID."""
        return self._occurs(data, self._certain)

    def may_be_in(self, data: str | bytes) -> bool:
        """Returns whether a text names the JID in one reading: also behind a hyphen, an underscore, a dot or a plus
        sign, and in front of an underscore, a hyphen or a number."""
        return self._occurs(data, self._possible)

    def _occurs(self, data: str | bytes, bounds: "_Bounds") -> bool:
        if isinstance(data, bytes):
            if self.hint and self.hint.encode() not in data.lower():
                return False
            data = data.decode("utf-8", "replace")
        return any(map(bounds.hold, bounds.pattern.finditer(data)))

    def replaced(self, text: str, by: str) -> str:
        """Returns a text with another address in place of the JID."""
        bounds = self._certain
        return bounds.pattern.sub(lambda match: by if bounds.hold(match) else match[0], text)

    def spellings_in(self, data: str | bytes) -> list[str]:
        """Returns the spellings in which a text names the JID, each once, without the text around them."""
        text, bounds = data.decode("utf-8", "replace") if isinstance(data, bytes) else data, self._certain
        return list(dict.fromkeys(match[0] for match in bounds.pattern.finditer(text) if bounds.hold(match)))

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


class _Bounds:
    """The bounds of an address in a text. `signs` are signs in front of it that continue the local part."""

    def __init__(self, spellings: str, start: str, end: str, signs: str) -> None:
        self.pattern = re.compile(f"{start}(?:{spellings}){end}", re.IGNORECASE)
        self._end = re.compile(end, re.IGNORECASE)
        self._signs = signs

    def hold(self, match: "re.Match[str]") -> bool:
        """Returns whether the percent-encoded characters around a match of `pattern`, if there are any, end the address
        as the characters themselves would."""
        text, start, end = match.string, match.start(), match.end()
        before = _ENCODED_BEFORE.search(text, max(0, start - _ENCODED_CHARACTERS), start)
        if before is not None and _continues(_decoded(before[0])[-1:], self._signs):
            return False
        if _ENCODED_AFTER.match(text, end) is None:
            return True
        return self._end.match(_decoded(text[end : end + _DECODED_CHARACTERS])) is not None


def _continues(character: str, signs: str) -> bool:
    return character.isalnum() or character in signs


def _decoded(text: str) -> str:
    for _ in range(_MOST_ENCODINGS):
        text = unquote(text)
    return text
