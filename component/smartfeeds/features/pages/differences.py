"""The words in which two texts differ, as HTML: removed words in `del`, added words in `ins`.

The comparison is that of Myers (An O(ND) Difference Algorithm and Its Variations, 1986), which ends after a number of
edits. The time of `difflib.SequenceMatcher` has no such bound: two texts of 6 KB that are made for it take two seconds.
"""

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from smartfeeds.texts import Texts

MAX_WORDS = 1_500  # of each text
MAX_EDITS = 200  # removed and added words of two texts; the worst texts of this kind take 0.1 s
PAGE_EDITS = 10 * MAX_EDITS  # of all texts of a page
_WORD = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")
_SPOKEN = Markup('<span class="unseen">{} </span>')


class Differences:
    """Compares the texts of one page. A text is shown without its differences if it has too many, or if the page has
    too many already."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._edits_left = PAGE_EDITS

    def highlighted(self, former: str, text: str) -> Markup:
        """A text with its differences from a former text."""
        before, after = _WORD.findall(former), _WORD.findall(text)
        most = min(MAX_EDITS, self._edits_left)
        if max(len(before), len(after)) > MAX_WORDS or abs(len(before) - len(after)) > most:
            return escape(text)
        equal = _equal_words(before, after, most)
        if equal is None:
            self._edits_left -= most
            return escape(text)
        self._edits_left -= len(before) + len(after) - 2 * len(equal)
        return Markup("").join(self._parts(before, after, equal))

    def _parts(self, before: list[str], after: list[str], equal: Sequence[tuple[int, int]]) -> Iterator[Markup]:
        begin = new_begin = 0
        for end, new_end in (*equal, (len(before), len(after))):
            # A screen reader does not tell the elements apart from other words.
            for tag, label, words in (
                ("del", self._texts.say("removed:"), before[begin:end]),
                ("ins", self._texts.say("added:"), after[new_begin:new_end]),
            ):
                if words:
                    spoken = _SPOKEN.format(label)
                    yield Markup("<{0}>{1}{2}</{0}>").format(tag, spoken, "".join(words))
            yield escape("".join(after[new_end : new_end + 1]))
            begin, new_begin = end + 1, new_end + 1


def _equal_words(before: list[str], after: list[str], most: int) -> list[tuple[int, int]] | None:
    """The indexes of the words that both texts have in the same order, None if more than `most` words differ."""
    # The furthest index in `before` on each diagonal (index in `before` minus index in `after`), by number of edits.
    reached, steps = {1: 0}, []
    for edits in range(most + 1):
        steps.append(reached.copy())
        for diagonal in range(-edits, edits + 1, 2):
            added = _is_added(reached, diagonal, edits)
            index = reached[diagonal + 1] if added else reached[diagonal - 1] + 1
            while index < len(before) and index - diagonal < len(after) and before[index] == after[index - diagonal]:
                index += 1
            reached[diagonal] = index
            if index >= len(before) and index - diagonal >= len(after):
                return _path(steps, index, diagonal)
    return None


def _is_added(reached: dict[int, int], diagonal: int, edits: int) -> bool:
    """Whether the last edit of the furthest way to a diagonal adds a word; otherwise it removes one."""
    return diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])


def _path(steps: list[dict[int, int]], index: int, diagonal: int) -> list[tuple[int, int]]:
    """The equal words on the way that ended at an index and a diagonal. `steps` has what was reached before each
    edit."""
    equal: list[tuple[int, int]] = []
    for edits, reached in reversed(list(enumerate(steps))):
        added = _is_added(reached, diagonal, edits)
        former = diagonal + 1 if added else diagonal - 1
        start = reached[former] if added else reached[former] + 1
        equal += ((each, each - diagonal) for each in range(index - 1, start - 1, -1))
        index, diagonal = reached[former], former
    equal.reverse()
    return equal
