"""Messages as commands and arguments."""

import pytest

from smartfeeds.chat.grammar import MAX_ARGUMENTS, CommandLine, arguments, quote, split_command, take, view_name


@pytest.mark.parametrize(
    ("text", "word", "rest"),
    [
        ("list", "list", ""),
        ("  /List  2 ", "list", "2"),
        ("post news Hello\n world", "post", "news Hello\n world"),
        ("", "", ""),
        (" \n\t ", "", ""),
        ("/", "/", ""),
        ("ÄNDERE x", "ändere", "x"),
    ],
)
def test_split_command(text: str, word: str, rest: str) -> None:
    assert split_command(text) == CommandLine(word, rest)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a b", ["a", "b"]),
        ('"a b" c', ["a b", "c"]),
        ('category="free music" q=x', ["category=free music", "q=x"]),
        ("„a b“ “c d” «e f»", ["a b", "c d", "e f"]),
        ("don't \"open", ["don't", '"open']),
        ('""', [""]),
        ("", []),
    ],
)
def test_arguments(text: str, tokens: list[str]) -> None:
    assert arguments(text) == tokens


def test_arguments_are_bounded() -> None:
    assert len(arguments("x " * 50_000)) == MAX_ARGUMENTS


@pytest.mark.parametrize("mark", ['"', "\u201c", "\u201e", "\u00ab"])
def test_unclosed_quotation_marks_take_linear_time(mark: str) -> None:
    """A quadratic search would not end within the time limit of tests."""
    assert len(arguments(mark * 250_001)) == 1
    assert len(arguments(f"{mark} " * 250_001)) >= 1


def test_take_keeps_the_line_breaks_of_the_rest() -> None:
    assert take('"my feed" one\ntwo ') == ("my feed", "one\ntwo")
    assert take("") == ("", "")


def test_view_name_escapes_values_and_refuses_what_is_no_filter() -> None:
    assert view_name("news", []) == "news"
    assert view_name("news", ["Author=bob", "q=a&b"]) == "news?author=bob&q=a%26b"
    assert view_name("news?order=created", ["author=bob"]) == "news?order=created&author=bob"
    assert view_name("news", ["colour=red"]) is None
    assert view_name("news", ["author"]) is None
    assert view_name("news", ["author="]) is None


@pytest.mark.parametrize("word", ["news", "my news", 'a "b" c', '"x"', "o'news", '„a“ "b"', '"', "“x y"])
def test_quoted_argument_is_read_as_it_was(word: str) -> None:
    assert arguments(f"show {quote(word)} 3") == ["show", word, "3"]
