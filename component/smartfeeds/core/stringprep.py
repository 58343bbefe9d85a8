"""The stringprep profiles of XMPP addresses: Nodeprep, Resourceprep (RFC 6122 A and B) and Nameprep (RFC 3491).

Prosody 0.12 and ejabberd 23.01 compare addresses by these profiles and not by PRECIS (RFC 7622), so this service does
too: under PRECIS `straße@example.org` would be another user than `strasse@example.org`. Code points that Unicode 3.2
did not assign stay as they are, as in Prosody; ejabberd refuses them.

Neither server compares a domain by its A-label, so `xn--bcher-kva.example` and `bücher.example` are two domains. Both
servers distinguish an ideographic dot from an ASCII dot. Here they are equal, so that such a dot evades no ban.
"""

import stringprep as tables
from collections.abc import Callable
from functools import lru_cache, reduce
from operator import or_
from unicodedata import ucd_3_2_0 as unicode_3_2

# Tables C.1.2 and C.2.2 to C.9 of RFC 3454, which all three profiles prohibit.
_PROHIBITED: list[Callable[[str], bool]] = [
    getattr(tables, f"in_table_{name}") for name in ("c12", "c22", "c3", "c4", "c5", "c6", "c7", "c8", "c9")
]
# The part of tables C.1.1 and C.2.1 in ASCII, and the characters that Nodeprep adds.
_CONTROLS = frozenset(map(chr, (*range(0x20), 0x7F)))
_NOT_IN_NODE = _CONTROLS | frozenset(" \"&'/:<>@")

_DOTS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")  # RFC 3490 3.1

# Flags of a character.
_IS_PROHIBITED, _RIGHT_TO_LEFT, _LEFT_TO_RIGHT = 1, 2, 4


def nodeprep(text: str) -> str | None:
    """Returns the local part of an address in the form that is compared, or None if it is malformed."""
    prepared = _prepared("".join(map(_folded, text)))
    return None if prepared is None or not _NOT_IN_NODE.isdisjoint(prepared) else prepared


def nameprep(text: str) -> str | None:
    """Returns the domain of an address in the form that is compared, with ASCII dots, or None if it is malformed."""
    prepared = _prepared("".join(map(_folded, text)))
    return None if prepared is None else prepared.translate(_DOTS)


def resourceprep(text: str) -> str | None:
    """Returns the resource of an address in the form that is compared, or None if it is malformed."""
    prepared = _prepared("".join(map(_without_ignored, text)))
    return None if prepared is None or not _CONTROLS.isdisjoint(prepared) else prepared


def _prepared(mapped: str) -> str | None:
    """Normalises a text. Returns None for prohibited characters or a wrong mix of directions (RFC 3454 4 to 6)."""
    text = unicode_3_2.normalize("NFKC", mapped)
    flags = reduce(or_, map(_flags, set(text)), 0)
    if flags & _IS_PROHIBITED:
        return None
    if flags & _RIGHT_TO_LEFT and (flags & _LEFT_TO_RIGHT or not _flags(text[0]) & _flags(text[-1]) & _RIGHT_TO_LEFT):
        return None
    return text


# The tables of the standard library are functions that take microseconds. Addresses use few scripts, so these caches
# contain nearly every character.
@lru_cache(4_096)
def _without_ignored(character: str) -> str:
    """Maps a character by table B.1."""
    assigned = not tables.in_table_a1(character)
    return "" if assigned and tables.in_table_b1(character) else character


@lru_cache(4_096)
def _folded(character: str) -> str:
    """Maps a character by tables B.1 and B.2."""
    mapped = _without_ignored(character)
    folded = tables.map_table_b2(mapped) if mapped and not tables.in_table_a1(mapped) else mapped
    # The library also folds to letters that are newer than table B.2 of the RFC.
    return mapped if any(map(tables.in_table_a1, folded)) else folded


@lru_cache(4_096)
def _flags(character: str) -> int:
    if tables.in_table_a1(character):
        return 0
    prohibited = any(is_prohibited(character) for is_prohibited in _PROHIBITED)
    right_to_left, left_to_right = tables.in_table_d1(character), tables.in_table_d2(character)
    return prohibited * _IS_PROHIBITED | right_to_left * _RIGHT_TO_LEFT | left_to_right * _LEFT_TO_RIGHT
