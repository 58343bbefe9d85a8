"""Names of parameters that others append to addresses, and misspelt names of our own (SF-024, A-24).

Mail programs, social networks and caches append parameters such as `utm_source`, `fbclid` and `_`. They are ignored. A
misspelt parameter would silently show something else than what was asked for, so it is an error. A ratio of `difflib`
alone would have to pass `lagn` for `lang`, and then pass `max_id`, a parameter of others, for `max`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

_SEPARATOR: Final = re.compile(r"&|\?(?=\w{1,40}=)")
# Names of others that are spelled nearly as ours: where a visitor came from.
_OF_OTHERS: Final = frozenset({"source", "src"})
# Shorter names are too near to each other: `q1` may mean anything.
_LEAST_CHARACTERS: Final = 3
# A long name may differ in a fifth of its letters.
_LONG: Final = 7
_LIKE: Final = 0.8


def own_fields(raw: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """The fields of a raw query string that are ours, as they were written, with their names. The name of a field is ""
    if it misspells a known one.

    Clients escape an ampersand twice, so that the name of the next field begins with "amp;" or a semicolon. Others
    append "?name=value" to an address that has a query already.
    """
    for field in _SEPARATOR.split(raw) if "?" in raw else raw.split("&"):
        name = unquote_plus(field.partition("=")[0]).removeprefix("amp;").lstrip(";")
        if name in known:
            yield name, field
        elif nearest_name(name, known):
            yield "", field


def nearest_name(name: str, known: Collection[str]) -> str:
    """The known name that a name misspells, "" if it is a name of others.

    It is misspelt if it differs in the case of letters, in hyphens or underscores, or in one letter that is missing,
    wrong, too much or exchanged with its neighbour; in a long name, in a fifth of the letters.
    """
    if name in known or name in _OF_OTHERS or len(name) > 2 * max(map(len, known), default=0):
        return ""
    folded = _folded(name)
    names = _folded_names(frozenset(known))
    if folded in names:
        return names[folded]
    return next((name for text, name in names.items() if _is_near(folded, text)), "")


@lru_cache(64)
def _folded_names(known: frozenset[str]) -> Mapping[str, str]:
    """The names by their folded form. A long query has a thousand names to compare with them."""
    return {_folded(name): name for name in sorted(known)}


def _folded(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").strip()


def _is_near(name: str, known: str) -> bool:
    if len(known) < _LEAST_CHARACTERS or len(name) < _LEAST_CHARACTERS:
        return False
    # Neither one letter nor a fifth of the letters: most names of others end here.
    if abs(len(name) - len(known)) > 1 and 2 * min(len(name), len(known)) < _LIKE * (len(name) + len(known)):
        return False
    start = 0
    while start < min(len(name), len(known)) and name[start] == known[start]:
        start += 1
    rest, known_rest = name[start:], known[start:]
    while rest and known_rest and rest[-1] == known_rest[-1]:
        rest, known_rest = rest[:-1], known_rest[:-1]
    is_exchanged = len(rest) == len(known_rest) == 2 and rest == known_rest[::-1]
    # A name of three letters with another letter in it is another word: `map` is not `max`.
    is_one_letter = max(len(rest), len(known_rest)) == 1 and (len(known) > _LEAST_CHARACTERS or not known_rest)
    if is_exchanged or is_one_letter or len(known) < _LONG:
        return is_exchanged or is_one_letter
    matcher = SequenceMatcher(None, name, known)
    return matcher.quick_ratio() >= _LIKE and matcher.ratio() >= _LIKE
