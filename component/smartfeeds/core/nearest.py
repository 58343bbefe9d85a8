"""Suggestions for names that people misspell: commands, settings, options of nodes, nodes, mirrors, consumers.

Parameters that others append to addresses need a stricter rule (`http.parameter_names`).
"""

from collections.abc import Iterable
from heapq import nlargest
from itertools import islice

# A name that is typed has few characters; of longer ones the beginning is compared.
_COMPARED_CHARACTERS = 40
_COMPARED_NAMES = 10_000
# Names of strangers can make the exact comparison slow: 1,000 of them took 0.2 s. So it is made of the names that have
# most letters in common with the typed one.
_EXACTLY_COMPARED = 20
LIKE = 0.6  # the similarity of two words (`difflib`): one wrong letter in four


def similarity(name: str, known: str) -> float:
    """Returns how similar two names are, from 0 to 1. The case of letters makes no difference."""
    from difflib import SequenceMatcher  # here, because hardly any command needs it

    return SequenceMatcher(None, _compared(known), _compared(name), autojunk=False).ratio()


def nearest(name: str, known: Iterable[str], like: float = LIKE) -> str:
    """Returns the known name that is most similar to a name, "" if none is. `like` is the least similarity, 0 to 1.

    The case of letters makes no difference.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=_compared(name), autojunk=False)

    def letters_in_common(text: str) -> float:
        matcher.set_seq1(_compared(text))
        return matcher.quick_ratio()

    candidates = nlargest(_EXACTLY_COMPARED, islice(known, _COMPARED_NAMES), letters_in_common)
    best = max(candidates, key=lambda text: similarity(name, text), default="")
    return best if best and similarity(name, best) >= like else ""


def did_you_mean(name: str, known: Iterable[str], like: float = LIKE) -> str:
    """Returns the end of an error message, such as "; did you mean admins?", or "" if no known name is similar."""
    suggestion = nearest(name, known, like)
    return f"; did you mean {suggestion}?" if suggestion else ""


def _compared(text: str) -> str:
    return text[:_COMPARED_CHARACTERS].casefold()
