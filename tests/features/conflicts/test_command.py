"""`smartfeeds conflicts`: what it shows, what a decision leaves."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.console import Exit
from support.shell import Run, shell_in

pytestmark = pytest.mark.needs("sync_documents")

CORPUS = Path(__file__).parents[2] / "corpus" / "data"
HEAD = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sx="http://feedsync.org/2007/feedsync"><id>urn:x:f</id>'
    "<title>Plans</title><updated>2026-01-03T10:00:00Z</updated>"
)
ALICE, BOB, CAROL = "feeds.b.example%2Falice@example.org", "bob", "carol"


def version(sync_id: str, title: str, by: str, hour: int, *, deleted: bool = False) -> str:
    """A second change of an item, which all versions of it have the first in common with."""
    mark = ' deleted="true"' if deleted else ""
    return (
        f"<entry><id>urn:x:{sync_id}</id><title>{title}</title><updated>2026-01-03T10:00:00Z</updated>"
        f'<sx:sync id="{sync_id}" updates="2"{mark}>'
        f'<sx:history sequence="2" when="2026-01-03T{hour}:00:00Z" by="{by}"/>'
        f'<sx:history sequence="1" when="2026-01-02T10:00:00Z" by="first"/></sx:sync></entry>'
    )


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a configuration; the node plans has an item with two conflicts, news none."""
    invoke = shell_in(tmp_path, monkeypatch)

    invoke("init", "feeds.example.org")
    invoke("node", "create", "news")
    versions = (
        version("one", "noon", ALICE, 10),
        version("one", "nine", BOB, 12),
        version("one", "x", CAROL, 11, deleted=True),
        version("two", "fine", ALICE, 10),
    )
    for entry in versions:
        invoke("import", "-", "--node", "plans", "--sync", stdin=f"{HEAD}{entry}</feed>")
    return invoke


def shown(ready: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ready("conflicts", *arguments, "--json").stdout)
    return found


def tags(ready: Run) -> dict[str, str]:
    """The tag of each version, by its title or that it is deleted."""
    (item,) = shown(ready, "plans")
    return {one["title"] or "deleted": one["tag"] for one in item["versions"]}


def exported(ready: Run) -> str:
    return ready("export", "--node", "plans", "--to", "atom", "--sync").stdout


def test_list_shows_each_version_the_winner_first(ready: Run) -> None:
    """[FS-060] [FS-062] [A-62] The highest wins; who, when, title or that it is deleted."""
    (item,) = shown(ready)

    assert (item["node"], item["item"], item["sync_id"]) == ("plans", "one", "one")
    assert [
        (one["wins"], one["changes"], one["when"][11:13], one["by"], one["deleted"], one["title"])
        for one in item["versions"]
    ] == [
        (True, 2, "12", "bob", False, "nine"),
        (False, 2, "11", "carol", True, ""),
        (False, 2, "10", "feeds.b.example/alice@example.org", False, "noon"),
    ]
    assert len({one["tag"] for one in item["versions"]}) == 3


def test_list_for_people_has_a_line_a_version(ready: Run) -> None:
    """[A-62] Readable without a manual; the tag stands where `resolve` wants it."""
    narrow = ready("conflicts", "plans").stdout
    lines = ready("conflicts", "plans", "--wide").stdout.splitlines()

    assert lines[0] == "plans: one, 3 versions"
    assert [line.split()[0] for line in lines[1:]] == ["wins", "conflict", "conflict"]
    assert [line.split()[1] for line in lines[1:]] == [one["tag"] for one in shown(ready)[0]["versions"]]
    assert lines[1].endswith("nine") and lines[2].endswith("(deleted)")
    assert "feeds.b.example/alice@example.org" in lines[3]
    assert max(map(len, narrow.splitlines())) <= 80
    for text in (
        "feeds.b.example/alice@example.org",
        "nine",
        "(deleted)",
        *(one["tag"] for one in shown(ready)[0]["versions"]),
    ):
        assert text in narrow


def test_list_without_a_command_is_list(ready: Run) -> None:
    assert ready("conflicts", "list", "plans").stdout == ready("conflicts", "plans").stdout
    assert ready("conflicts", "list").stdout == ready("conflicts").stdout
    assert "resolve" in ready("conflicts", "--help").stdout


def test_node_without_conflicts_says_so(ready: Run) -> None:
    result = ready("conflicts", "news")

    assert (result.stdout, result.stderr) == ("", "There are no conflicts.\n")
    assert shown(ready, "news") == []


def test_list_goes_on_behind_a_page(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, all of them."""
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__PAGE_MAX", "2")
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__PAGE_DEFAULT", "1")
    names = [f"n{number}" for number in range(5)]
    for by, hour in ((ALICE, 10), (BOB, 11)):
        entries = "".join(version(name, by, by, hour) for name in names)
        ready("import", "-", "--node", "many", "--sync", stdin=f"{HEAD}{entries}</feed>")

    assert [one["item"] for one in shown(ready, "many")] == names
    assert [one["node"] for one in shown(ready)] == ["many"] * 5 + ["plans"]


def test_resolve_keeps_the_winner_and_settles_all(ready: Run) -> None:
    """[FS-070] [FS-072] [FS-073] The history has what was settled, so that it is settled everywhere."""
    told = ready("conflicts", "resolve", "plans", "one", "--by", "judge@example.org").stdout

    assert told == "Resolved one of plans: nine; 0 conflicts left.\n"
    assert shown(ready) == []
    text = exported(ready)
    assert "sx:conflicts" not in text and 'id="one" updates="3"' in text
    assert re.findall(r'sequence="3" when="[^"]*" by="([^"]*)"', text) == ["feeds.example.org%2Fjudge@example.org"]
    assert all(f'by="{by}"' in text for by in (ALICE, BOB, CAROL))


def test_resolve_keeps_the_version_that_is_named(ready: Run) -> None:
    """[FS-071] [A-62] Its content stays, and it stays when the same versions come again."""
    ready("conflicts", "resolve", "plans", "one", "--keep", tags(ready)["noon"])
    text = exported(ready)
    again = ready("import", "-", "--node", "plans", "--sync", stdin=f"{HEAD}{version('one', 'nine', BOB, 12)}</feed>")

    assert "<title>noon</title>" in text and "<title>nine</title>" not in text
    assert "1 unchanged" in again.stdout
    assert exported(ready) == text


def test_resolve_by_a_deletion_deletes(ready: Run) -> None:
    """[FS-052] [FS-070] A version that is deleted can be the one that stays."""
    result = json.loads(
        ready("conflicts", "resolve", "plans", "one", "--keep", tags(ready)["deleted"], "--json").stdout
    )

    assert result == {"node": "plans", "item": "one", "title": "deleted", "deleted": True, "left": 0}
    assert json.loads(ready("node", "show", "plans", "--json").stdout)["deleted"] == 1


def test_combine_writes_a_text_of_several_versions(ready: Run) -> None:
    """[FS-070] Its first line is the title, and is not repeated in the text. A file that is no text changes nothing."""
    before = exported(ready)
    Path("bad.txt").write_bytes(b"\xff")
    ready("conflicts", "resolve", "plans", "one", "--combine", "bad.txt", code=Exit.CONFIG)
    ready("conflicts", "resolve", "plans", "one", "--combine", "-", stdin=b"x" * 300_000, code=Exit.REFUSED)
    assert exported(ready) == before

    result = ready("conflicts", "resolve", "plans", "one", "--combine", "-", stdin="noon or nine\nwe will see\n")

    assert result.stdout == "Resolved one of plans: noon or nine; 0 conflicts left.\n"
    assert '<content type="text">we will see</content>' in exported(ready)
    assert shown(ready) == []


def test_settle_leaves_the_others(ready: Run) -> None:
    """[FS-069] Only what was decided on is gone."""
    known = tags(ready)

    assert "1 conflict left" in ready("conflicts", "resolve", "plans", "one", "--settle", known["deleted"]).stdout
    (item,) = shown(ready)
    assert [one["title"] for one in item["versions"]] == ["nine", "noon"]


def test_settle_includes_what_the_one_who_decides_has_made(ready: Run) -> None:
    """[FS-051] [FS-069] Whoever changes an item has seen what they did before; the help says so."""
    own = version("one", "mine", "feeds.example.org%2Fjudge@example.org", 10)
    ready("import", "-", "--node", "plans", "--sync", "--own-edits", stdin=f"{HEAD}{own}</feed>")
    known = tags(ready)
    assert known.keys() == {"nine", "noon", "mine", "deleted"}

    arguments = ("conflicts", "resolve", "plans", "one", "--settle", known["deleted"], "--by", "judge@example.org")
    assert "1 conflict left" in ready(*arguments).stdout
    assert tags(ready).keys() == {"nine", "noon"}
    told = " ".join(ready("conflicts", "resolve", "--help").stdout.split())
    assert "The others stay, except versions by the same author" in told


def test_conflicts_of_sse_are_listed_and_settled_too(ready: Run) -> None:
    """[SSE-044] [SSE-036] [SSE-048] Its conflicts are a list of what was lost; a change clears it."""
    for name in ("sm_sse_rss_http_ns.xml", "sm_sse_rss_https_ns.xml"):
        ready("import", str(CORPUS / name), "--node", "sse", "--sync")
    (item,) = shown(ready, "sse")
    ready("conflicts", "resolve", "sse", item["item"], "--keep", item["versions"][1]["tag"])
    text = ready("export", "--node", "sse", "--to", "atom", "--sync").stdout

    assert [one["title"] for one in item["versions"]] == ["T", "other"]
    assert "<title>other</title>" in text and 'version="5"' in text
    assert "sx:conflict" not in text and "conflict=" not in text


def test_decision_is_that_of_the_first_admin_or_of_the_component(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A-51] As an import: readers of the history see who it was."""
    known = tags(ready)
    ready("conflicts", "resolve", "plans", "one", "--settle", known["deleted"])
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__ADMINS", '["zoe@example.org"]')
    ready("conflicts", "resolve", "plans", "one")

    makers = re.findall(r'sequence="[34]" when="[^"]*" by="([^"]*)"', exported(ready))
    assert makers == ["feeds.example.org%2Fzoe@example.org", "feeds.example.org%2Ffeeds.example.org"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("plans", "two"), "no such conflict"),
        (("plans", "none"), "no such item"),
        (("nowhere", "one"), "no such node"),
        (("plans", "one", "--keep", "0123456789abcdef"), "look at its conflicts again"),
        (("plans", "one", "--settle", "0123456789abcdef"), "look at its conflicts again"),
    ],
    ids=["no conflict", "no item", "no node", "keep", "settle"],
)
def test_resolve_of_what_is_not_there_is_refused_and_changes_nothing(
    ready: Run, arguments: tuple[str, ...], reason: str
) -> None:
    before = exported(ready)

    assert reason in ready("conflicts", "resolve", *arguments, code=Exit.REFUSED).stderr
    assert exported(ready) == before


def test_mistakes_end_with_their_code(ready: Run) -> None:
    assert "no such node" in ready("conflicts", "nowhere", code=Exit.REFUSED).stderr
    assert "bare JID" in ready("conflicts", "resolve", "plans", "one", "--by", "@", code=Exit.CONFIG).stderr
    ready("conflicts", "resolve", "plans", code=Exit.USAGE)


def test_list_moves_no_cursor_and_breaks_no_line(ready: Run) -> None:
    """What others wrote is one line, whatever is in it."""
    for by, hour in (("a%0A", 10), ("b", 11)):
        entry = version("evil", f"&#10;[bold]{by}\u009b2J", by, hour)
        ready("import", "-", "--node", "evil", "--sync", stdin=f"{HEAD}{entry}</feed>")

    lines = ready("conflicts", "evil").stdout.splitlines()
    assert len(lines) == 3 and all(line.isprintable() for line in lines)
    assert "[bold]" in lines[1]
