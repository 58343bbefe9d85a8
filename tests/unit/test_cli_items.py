"""`smartfeeds publish` and `smartfeeds item`."""

import asyncio
import json
from pathlib import Path

import pytest

from smartfeeds.cli.item_rows import rest_notes
from smartfeeds.console import Exit
from smartfeeds.core.model import MAX_WRITTEN_BYTES, Slice
from smartfeeds.core.view import BARE
from smartfeeds.formats.entry import Entry, read_entry
from smartfeeds.formats.titles import WORDS_CHARACTERS
from support.service import stored_service
from support.shell import Run

ENTRY = '<entry xmlns="http://www.w3.org/2005/Atom"><title>From a file</title><content>text</content></entry>'


@pytest.fixture
def news(ready: Run) -> Run:
    """A function that runs a command in a folder with the node news of Alice."""
    ready("node", "create", "news", "--owner", "alice@example.org")
    return ready


def entries() -> list[Entry]:
    """The entries of the node news, oldest first."""

    async def work() -> list[Entry]:
        async with stored_service() as service:
            return await service.read(lambda tx, _context: [read_entry(item) for item in tx.slice(1, Slice(BARE, 99))])

    return asyncio.run(work())


def test_publish_prints_the_id_and_stores_title_text_link_and_tags(news: Run) -> None:
    result = news(
        "publish",
        "news",
        "It works.",
        "--title",
        "Day one",
        "--link",
        "https://example.org/1",
        "--tag",
        "a",
        "--tag",
        "b",
    )

    item_id = result.stdout.strip()
    assert result.stderr == "Published in news.\n"
    (entry,) = entries()
    assert (entry.title.plain, entry.content.plain) == ("Day one", "It works.")
    assert [(link.rel, link.href) for link in entry.links] == [("alternate", "https://example.org/1")]
    assert [category.term for category in entry.categories] == ["a", "b"]
    news("retract", "news", item_id)


def test_publish_takes_the_first_line_as_the_title(news: Run) -> None:
    news("publish", "news", "One line")
    news("publish", "news", "First line\nand more")
    news("publish", "news", "long" * 50)

    short, two_lines, long = entries()
    assert (short.title.plain, short.content) == ("One line", None)
    assert (two_lines.title.plain, two_lines.content.value) == ("First line", "and more")
    assert (long.title.plain, long.content.plain) == (f"{('long' * 50)[: WORDS_CHARACTERS - 1]}…", "long" * 50)


@pytest.mark.parametrize("arguments", [["-"], [], ["--file", "-"]])
def test_publish_reads_standard_input(news: Run, arguments: list[str]) -> None:
    news("publish", "news", *arguments, stdin="from a pipe\n")
    assert entries()[0].title.plain == "from a pipe"


def test_publish_reads_text_and_entries_from_files(news: Run) -> None:
    Path("entry.xml").write_text(ENTRY)
    news("publish", "news", "--file", "entry.xml")
    news("publish", "news", "--file", "entry.xml", "--xml")

    text, entry = entries()
    assert text.title.plain == ENTRY
    assert (entry.title.plain, entry.content.plain) == ("From a file", "text")


def test_publish_replaces_the_item_with_the_id(news: Run) -> None:
    assert news("publish", "news", "one", "--id", "x").stdout == "x\n"
    again = news("publish", "news", "two", "--id", "x")

    assert again.stderr == "Replaced in news.\n"
    assert [entry.title.plain for entry in entries()] == ["two"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["text", "--file", "entry.xml"], "not both"),
        (["  "], "the text is empty"),
        (["bell \x07"], "control characters"),
        (["x", "--title", "bell \x07"], "control characters"),
        (["x", "--link", "javascript:alert(1)"], "is not a web address"),
        ([ENTRY, "--xml", "--title", "T"], "write them into the entry"),
        (["--file", "missing.txt"], "does not exist"),
    ],
)
def test_publish_explains_a_wrong_command_line(news: Run, arguments: list[str], reason: str) -> None:
    Path("entry.xml").write_text(ENTRY)

    assert reason in " ".join(news("publish", "news", *arguments, code=Exit.USAGE).stderr.split())
    assert entries() == []


@pytest.mark.parametrize(
    ("data", "arguments", "code", "reason"),
    [
        (b"\xff", [], Exit.FAILED, "is not UTF-8"),
        (b"x" * (MAX_WRITTEN_BYTES + 1), [], Exit.REFUSED, "at most 380000 bytes"),
        (b"x" * 70_000, [], Exit.REFUSED, "the limit of this node is 65,536"),
        (b"<entry", ["--xml"], Exit.REFUSED, "well-formed"),
    ],
    ids=["encoding", "endless", "long", "malformed"],
)
def test_publish_refuses_what_no_item_can_be(
    news: Run, data: bytes, arguments: list[str], code: Exit, reason: str
) -> None:
    assert reason in news("publish", "news", *arguments, stdin=data, code=code).stderr
    assert entries() == []


@pytest.mark.needs("sync_documents")
def test_publish_acts_as_the_named_jid_else_as_the_first_admin(news: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher decides which items a later publish may replace."""
    news("node", "set", "news", "itemreply=publisher")
    news("publish", "news", "a", "--by", "bob@example.org")
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__ADMINS", '["zoe@example.org"]')
    news("publish", "news", "b")

    news("export", "--node", "news", "--to", "atom", "--sync", "--output", "out.xml")
    document = Path("out.xml").read_text()
    assert "bob" in document and "zoe" in document
    assert "not a bare JID" in news("publish", "news", "c", "--by", "bob@x/y", code=Exit.CONFIG).stderr


def test_retract_leaves_a_tombstone(news: Run) -> None:
    news("publish", "news", "one", "--id", "x")
    assert news("retract", "news", "x").stdout == "Retracted x from news.\n"

    news("retract", "news", "y", code=Exit.REFUSED)
    assert '"deleted": 1' in news("node", "show", "news", "--json").stdout


def test_item_list_has_the_newest_items_the_newest_last(news: Run) -> None:
    for number in range(30):
        news("publish", "news", f"Text {number}", "--id", f"i{number}", "--link", f"https://example.org/{number}")

    listed = news("item", "list", "news")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "id",
        *(f"i{number}" for number in range(10, 30)),
    ]
    assert listed.stderr == "The newest 20 of 30 items; --max lists more.\n"
    assert news("item", "list", "news", "--max", "30").stderr == ""
    (row,) = json.loads(news("item", "list", "news", "--max", "1", "--json").stdout)
    assert (row["id"], row["title"], row["link"]) == ("i29", "Text 29", "https://example.org/29")
    assert row["deleted"] is False and row["created"] == row["modified"]
    assert len(json.loads(news("item", "list", "news", "--max", "99", "--json").stdout)) == 30


def test_item_list_of_a_long_node_reads_page_by_page(news: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__PAGE_MAX", "3")
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__PAGE_DEFAULT", "3")
    for number in range(8):
        news("publish", "news", f"Text {number}", "--id", f"i{number}")

    listed = news("item", "list", "news", "--max", "7", "--json")
    assert [row["id"] for row in json.loads(listed.stdout)] == [f"i{number}" for number in range(1, 8)]
    assert listed.stderr == ""
    assert news("item", "list", "news", "--max", "7").stderr == "The newest 7 of 8 items; --max lists more.\n"


def test_item_list_of_a_view_that_is_not_counted_says_that_there_may_be_more() -> None:
    assert rest_notes(20, None) == ["The newest 20 items, and there may be more; --max lists more."]


def test_item_list_of_a_view_has_its_items(news: Run) -> None:
    news("publish", "news", "one", "--id", "a", "--tag", "sport")
    news("publish", "news", "two", "--id", "b")

    assert [row["id"] for row in json.loads(news("item", "list", "news?category=sport", "--json").stdout)] == ["a"]
    assert "There are no items in news?category=x." in news("item", "list", "news?category=x").stderr


def test_items_that_are_no_entries_are_listed_by_their_ids(ready: Run) -> None:
    ready("node", "create", "talk", "--kind", "generic")
    ready("publish", "talk", "<x xmlns='urn:x'/>", "--xml", "--id", "one")

    (row,) = json.loads(ready("item", "list", "talk", "--json").stdout)
    assert (row["id"], row["title"], row["link"]) == ("one", "", "")


def test_json_of_a_change_names_node_and_item(news: Run) -> None:
    published = news("publish", "news", "hello", "--id", "a", "--json")
    assert json.loads(published.stdout) == {"node": "news", "id": "a", "created": True}
    assert published.stderr == ""
    assert json.loads(news("publish", "news", "hello", "--id", "a", "--json").stdout)["created"] is False
    assert json.loads(news("item", "remove", "news", "a", "--json").stdout) == {"node": "news", "id": "a"}
