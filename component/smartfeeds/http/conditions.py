"""What the asker has already: the entity tags of If-None-Match and If-Match (RFC 9110 8.8.3, 13.1)."""

import re

MAX_TAGS = 64
ANY = "*"
_TAG = re.compile(r'(W/)?"([!#-~\x80-\U0010ffff]*)"')


def tags_of(header: str) -> frozenset[str]:
    """The tags that a header names, without quotes, weak ones too."""
    return frozenset(tag for _, tag in _TAG.findall(header)[:MAX_TAGS])


def strong_tags_of(header: str) -> frozenset[str]:
    """The strong tags alone: weak ones never match where something is changed (RFC 9110 13.1.1)."""
    return frozenset(tag for weak, tag in _TAG.findall(header)[:MAX_TAGS] if not weak)


def is_any(header: str) -> bool:
    """Whether a header means whatever there is."""
    return header.strip() == ANY


def is_known(header: str, tag: str) -> bool:
    """Whether If-None-Match names the representation of this tag (weak comparison, RFC 9110 13.1.2)."""
    return is_any(header) or tag.removeprefix("W/").strip('"') in tags_of(header)
