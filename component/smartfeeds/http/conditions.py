"""The entity tags of If-None-Match and If-Match (RFC 9110 8.8.3, 13.1).

aiohttp's `request.if_none_match` and `if_match` are not used: they read the first line of the header only, drop every
tag of a header with a syntax error, and return the same value for `*` and for the tag `"*"`.
"""

import re
from collections.abc import Hashable
from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus

from smartfeeds import __version__
from smartfeeds.http.replies import Reply

MAX_TAGS = 64  # that are read of a header; 8 KB have room for thousands
ANY = "*"
_TAG = re.compile(r'(W/)?"([!#-~\x80-\U0010ffff]*)"')


@lru_cache(1_024)  # feeds and representations recur; callers leave out what does not, such as positions
def representation_mark(*parts: Hashable) -> str:
    """A short hash of everything but the state of a feed that a representation depends on. Put behind the version of
    the state, it makes the tag of the representation."""
    return short_hash(repr((__version__, parts)))


def short_hash(text: str) -> str:
    """A hash of a text that distinguishes representations."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tags_of(header: str) -> frozenset[str]:
    """The tags in a header, without quotes, weak tags included."""
    return frozenset(tag for _, tag in _TAG.findall(header)[:MAX_TAGS])


def strong_tags_of(header: str) -> frozenset[str]:
    """The strong tags only: a weak tag never allows a change (RFC 9110 13.1.1)."""
    return frozenset(tag for weak, tag in _TAG.findall(header)[:MAX_TAGS] if not weak)


def is_any(header: str) -> bool:
    """Whether a header matches any representation."""
    return header.strip() == ANY


def is_known(header: str, tag: str) -> bool:
    """Whether If-None-Match has this tag (weak comparison, RFC 9110 13.1.2)."""
    return is_any(header) or tag.removeprefix("W/").strip('"') in tags_of(header)


def unless_known(header: str, reply: Reply) -> Reply:
    """304 (Not Modified) if If-None-Match has the tag of a reply, else the reply. The headers stay, except the coding
    of the body, which a 304 does not have."""
    if not is_known(header, reply.headers["ETag"]):
        return reply
    headers = {name: value for name, value in reply.headers.items() if name != "Content-Encoding"}
    return Reply(status=HTTPStatus.NOT_MODIFIED, headers=headers)
