"""Suggestions for names that people misspell: commands, settings, options of nodes, nodes, mirrors, consumers.

Parameters that others append to addresses need a stricter rule (`http.parameter_names`).
"""

from collections.abc import Iterable
from itertools import islice

# A name that is typed has few characters; of longer ones the beginning is compared. `difflib` takes quadratic time.
_COMPARED_CHARACTERS = 200
_COMPARED_NAMES = 10_000
LIKE = 0.6


def nearest(name: str, known: Iterable[str], like: float = LIKE) -> str:
    """Returns the known name that is most similar to a name, "" if none is. `like` is the least similarity, 0 to 1.

    The case of letters makes no difference.
    """
    from difflib import get_close_matches  # here, because hardly any command needs it

    folded = {text[:_COMPARED_CHARACTERS].lower(): text for text in islice(known, _COMPARED_NAMES)}
    matches = get_close_matches(name[:_COMPARED_CHARACTERS].lower(), folded, 1, like)
    return folded[matches[0]] if matches else ""


def did_you_mean(name: str, known: Iterable[str], like: float = LIKE) -> str:
    """Returns the end of an error message, such as "; did you mean admins?", or "" if no known name is similar."""
    suggestion = nearest(name, known, like)
    return f"; did you mean {suggestion}?" if suggestion else ""
