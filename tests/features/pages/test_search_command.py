"""`smartfeeds search`."""

import json
from typing import Any

import pytest

from smartfeeds.console import Exit
from support.shell import Run


@pytest.fixture
def feeds(ready: Run) -> Run:
    """A function that runs a command in a folder with two public feeds and a closed one."""
    for node in ("news", "blog", "closed"):
        ready("node", "create", node, "--owner", "alice@example.org")
        ready("publish", node, "An apple a day", "--id", f"{node}-1", "--by", "alice@example.org")
        ready("publish", node, "A pear", "--id", f"{node}-2", "--by", "alice@example.org")
    ready("node", "set", "closed", "access_model=whitelist")
    return ready


def found(feeds: Run, *arguments: str) -> list[tuple[str, str]]:
    rows: list[dict[str, Any]] = json.loads(feeds("search", *arguments, "--json").stdout)
    return [(row["node"], row["id"]) for row in rows]


def test_search_of_all_feeds_finds_those_that_are_public(feeds: Run) -> None:
    assert sorted(found(feeds, "apple")) == [("blog", "blog-1"), ("news", "news-1")]
    assert found(feeds, "apple day", "news") == [("news", "news-1")]


def test_person_finds_what_it_may_read(feeds: Run) -> None:
    assert ("closed", "closed-1") in found(feeds, "apple", "--by", "alice@example.org")
    feeds("node", "set", "news", "access_model=authorize")
    assert found(feeds, "apple", "--by", "bob@example.org") == [("blog", "blog-1")]
    assert ("news", "news-1") in found(feeds, "apple")


def test_person_finds_nothing_in_a_feed_that_is_closed_to_it(feeds: Run) -> None:
    """Also if the feed is named: the rights are those of the person, not those of the operator."""
    assert found(feeds, "apple", "closed", "--by", "alice@example.org") == [("closed", "closed-1")]
    refused = feeds("search", "apple", "closed", "--by", "bob@example.org", "--json", code=Exit.REFUSED)
    assert refused.stdout == ""


def test_operator_searches_any_node_and_view(feeds: Run) -> None:
    assert found(feeds, "pear", "closed") == [("closed", "closed-2")]
    assert found(feeds, "pear", "closed?author=bob@example.org") == []


def test_search_finds_an_entry_that_was_published_after_the_first_search(feeds: Run) -> None:
    """No service completes the filter index in the background."""
    assert len(found(feeds, "pear")) == 2
    feeds("publish", "news", "Another pear", "--id", "news-3")
    assert ("news", "news-3") in found(feeds, "pear")


def test_feed_with_more_entries_is_named(feeds: Run) -> None:
    for number in range(4):
        feeds("publish", "news", f"plum {number}")

    result = feeds("search", "plum")
    assert len(result.stdout.splitlines()) == 1 + 3
    assert "There are more entries in news: name one of them as NODE." in result.stderr
    assert len(found(feeds, "plum", "news")) == 4
    assert len(found(feeds, "plum", "news", "--max", "2")) == 2


def test_list_that_has_not_everything_says_so(feeds: Run) -> None:
    """The rest is not found by looking at a list that ends without a word."""
    for number in range(3):
        feeds("publish", "news", f"plum {number}")
    feeds("publish", "blog", "plum")
    assert feeds("search", "plum", "news", "--max", "2").stderr == "The newest 2 of 3 items; --max lists more.\n"
    cut = "The first 2 entries, and there may be more; --max lists more.\n"
    assert feeds("search", "plum", "--max", "2").stderr == cut
    assert feeds("search", "plum", "--max", "2", "--json").stderr == ""
    assert feeds("search", "plum", "--max", "4").stderr == ""


def test_nothing_found_is_no_error(feeds: Run) -> None:
    assert "Nothing was found for 'kiwi'." in feeds("search", "kiwi").stderr
    assert found(feeds, "kiwi") == []


@pytest.mark.parametrize("text", ["", " ", "!?", "&q=apple", ";"])
def test_text_without_words_is_a_usage_error_or_finds_its_words(feeds: Run, text: str) -> None:
    if any(sign.isalpha() for sign in text):
        assert found(feeds, text) == []  # the words are q and apple
    else:
        assert "no word to search for" in feeds("search", text, code=Exit.USAGE).stderr
