"""The words in which two texts differ, and the limits of the comparison."""

import random
import re
from html import unescape

import pytest

from smartfeeds.features.pages import differences
from smartfeeds.features.pages.differences import MAX_EDITS, PAGE_EDITS, Differences
from smartfeeds.texts import Texts

_SPOKEN = re.compile(r'<span class="unseen">[a-z]+: </span>')


def _marked(former: str, text: str) -> str:
    return _SPOKEN.sub("", Differences(Texts("en")).highlighted(former, text))


@pytest.mark.parametrize(
    ("former", "text", "html"),
    [
        ("", "", ""),
        ("one two", "one two", "one two"),
        ("one two", "one three", "one <del>two</del><ins>three</ins>"),
        ("one three", "one two three", "one <ins>two </ins>three"),
        ("one two three", "one three", "one <del>two </del>three"),
        ("", "one", "<ins>one</ins>"),
        ("one", "", "<del>one</del>"),
        ("a < b", "a < <script>", "a &lt; <del>b</del><ins>&lt;script&gt;</ins>"),
    ],
)
def test_words_are_marked(former: str, text: str, html: str) -> None:
    """Removed words come before those that replace them, and everything is escaped."""
    assert _marked(former, text) == html


@pytest.mark.parametrize("seed", range(30))
def test_both_texts_can_be_read(seed: int) -> None:
    """Without the added words the HTML is the former text, without the removed words the text."""
    random_ = random.Random(seed)
    former, text = (" ".join(random_.choices("abcde<&", k=random_.randint(0, 40))) for _ in range(2))
    html = _marked(former, text)
    for kept, dropped, expected in (("del", "ins", former), ("ins", "del", text)):
        without = re.sub(f"<{dropped}>.*?</{dropped}>", "", html)
        assert unescape(re.sub(f"</?{kept}>", "", without)) == expected


# 90 words against 1,500: `difflib` needs two seconds, and a page of conflicts may have thousands of such texts.
_WORDS = [f"w{number % 3} " if number % 2 else f"q{number} " for number in range(1_500)]
_COSTLY = ("".join(_WORDS), "".join(_WORDS[number * 7 % 1_500] for number in range(1_500)))


def test_time_of_a_comparison_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison ends after a number of edits. The text is shown without marks."""
    steps = 0
    is_added = differences._is_added

    def count(reached: dict[int, int], diagonal: int, edits: int) -> bool:
        nonlocal steps
        steps += 1
        return is_added(reached, diagonal, edits)

    monkeypatch.setattr(differences, "_is_added", count)
    assert _marked(*_COSTLY) == _COSTLY[1]
    assert steps == (MAX_EDITS + 1) * (MAX_EDITS + 2) // 2


def test_time_of_a_page_is_bounded() -> None:
    """After many comparisons a page shows only differences that it has edits left for."""
    page = Differences(Texts("en"))
    assert "<ins>" in page.highlighted("one", "two")
    for _ in range(PAGE_EDITS // MAX_EDITS):
        assert page.highlighted(*_COSTLY) == _COSTLY[1]
    assert page.highlighted("one", "two") == "two"
