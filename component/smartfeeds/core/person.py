"""A person whose data is exported or erased: where a text names the bare JID, in every encoding that is stored.

A match ends at the bounds of an address: `bob@example.org` is not in `kbob@example.org` or `bob@example.org.uk`.
"""

import hashlib
import re
from functools import cached_property
from typing import Final
from urllib.parse import quote

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.errors import ConfigError

# Percent-encodings of percent-encodings: an address in a node name, in the address of that node, in an endpoint.
_MOST_ENCODINGS: Final = 4
_START: Final = r"(?:(?<![\w.+-])|(?<=%[0-9a-f]{2})|(?<=%25[0-9a-f]{2})|(?<=%2525[0-9a-f]{2}))"
# The suffixes of documents and common files do not continue a domain: `alice@example.org.png` names the person.
_SUFFIX: Final = r"(?:atom|rss|opml|json|xml|html?|txt|md|pdf|csv|vcf|ics|png|jpe?g|gif|webp|avif|svg|mp[34]|og[ga])\b"
# A hyphen continues a domain of one label only: ids such as `JID-1` name the person.
_END: Final = rf"(?!\w|\.(?!{_SUFFIX})\w)"
_END_OF_LABEL: Final = rf"(?![\w-]|\.(?!{_SUFFIX})\w)"


class Person:
    """A bare JID with a local part. Raises ConfigError for any other text."""

    def __init__(self, text: str) -> None:
        jid = parse_jid(text)
        if jid is None or jid.resource or not jid.local:
            raise ConfigError(f"{text!r} is not the bare JID of a person; name it like alice@example.org")
        self.address: Jid = jid
        self.jid = str(jid)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        spellings = [self.jid]
        for _ in range(_MOST_ENCODINGS):
            spellings.append(quote(spellings[-1], safe=""))
        # XEP-0106 escapes the "@" in the local part of another address.
        spellings.append(self.jid.replace("@", "\\40"))
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
        return self._pattern.search(data) is not None

    def replaced(self, text: str, by: str) -> str:
        """Returns a text with another address in place of the JID."""
        return self._pattern.sub(lambda _match: by, text)

    def digest(self, salt: bytes) -> bytes:
        """Returns the salted digest by which the service recognises the JID after its erasure (OPS-028)."""
        return hashlib.blake2b(self.jid.encode(), key=salt[:64], digest_size=32).digest()
