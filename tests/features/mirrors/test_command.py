"""`smartfeeds mirror`: what it stores, and what it tells."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.core.consumers import Consumer, Failure
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, MirrorRow, MirrorState, refusal
from smartfeeds.store.base import WriteTx
from support.shell import Run, write

ADDRESS = "xmpp:feeds.b.example?;node=plans"
WEB = "https://feeds.c.example/feeds/plans/"
T_US = 1_767_225_600_000_000


def change(name: str, **states: MirrorState) -> None:
    """What a running service would write of a mirror."""

    def work(tx: WriteTx, _context: object) -> None:
        row = stored_mirrors.mirror(tx, name)
        assert row is not None
        for way, state in states.items():
            row = row.with_state(Direction(way), state)
        stored_mirrors.put(tx, row)

    write(work)


def rows(ready: Run) -> list[dict[str, object]]:
    found = json.loads(ready("mirror", "list", "--json").stdout)
    assert isinstance(found, list)
    return found


def test_add_stores_the_mirror_and_says_what_the_other_side_has_to_do(ready: Run) -> None:
    """It works where no service has ever run."""
    result = ready("mirror", "add", ADDRESS, "--node", "plans", "--direction", "both", "--name", "b")

    assert result.stdout == "b\n"
    assert "feeds.b.example must make feeds.a.example a publisher of its node plans." in result.stderr
    assert rows(ready) == [
        {"name": "b", "node": "plans", "direction": "both", "address": ADDRESS, "from": "mirror add"},
    ]


def test_add_without_a_name_makes_one_that_is_always_the_same(ready: Run) -> None:
    name = ready("mirror", "add", ADDRESS, "--node", "plans").stdout.strip()
    ready("mirror", "remove", name)
    assert ready("mirror", "add", ADDRESS, "--node", "plans").stdout.strip() == name != ""
    assert ready("mirror", "add", ADDRESS, "--node", "others").stdout.strip() != name


def test_web_address_needs_no_publisher(ready: Run) -> None:
    result = ready("mirror", "add", WEB, "--node", "plans", "--every", "60", "--allow-private", "--own-edits")

    assert "publisher" not in result.stderr
    assert rows(ready)[0]["address"] == WEB


def test_web_address_may_have_the_scheme_of_a_reader(ready: Run) -> None:
    """[SRC-014]"""
    ready("mirror", "add", f"feed:{WEB}", "--node", "plans", "--allow-private")
    assert rows(ready)[0]["address"] == WEB


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("mailto:a@b", "--node", "plans"), Exit.CONFIG, "is not the address of a feed; write it as 'xmpp:"),
        (("foo", "--node", "plans"), Exit.CONFIG, "or as https://feeds.example.org/feeds/NODE/"),
        (("xmpp:feeds.b.example?", "--node", "plans"), Exit.CONFIG, "in quotes on the command line"),
        (("xmpp:feeds.b.example", "--node", "plans"), Exit.CONFIG, "has no node"),
        (("https:///x", "--node", "plans"), Exit.CONFIG, "is not a web address"),
        ((ADDRESS + "%3Forder=created", "--node", "plans"), Exit.CONFIG, "is a view; name the node without parameters"),
        ((ADDRESS, "--node", "plans?order=created"), Exit.CONFIG, "a mirror needs the name of a node"),
        ((ADDRESS.replace("feeds.b", "feeds.a"), "--node", "copy"), Exit.CONFIG, "is at this service"),
        ((WEB, "--node", "plans", "--direction", "both"), Exit.CONFIG, "in one direction only; use direction in"),
        ((ADDRESS, "--node", "plans", "--name", "A b"), Exit.CONFIG, "cannot be the name of a mirror"),
        ((ADDRESS, "--node", "plans", "--every", "1"), Exit.USAGE, "--every"),
        ((ADDRESS, "--node", "plans", "--owner", "@"), Exit.USAGE, "is not a bare JID"),
        ((ADDRESS,), Exit.USAGE, "Missing argument 'NODE'"),
    ],
)
def test_add_tells_what_is_wrong_and_stores_nothing(
    ready: Run, arguments: tuple[str, ...], code: Exit, message: str
) -> None:
    assert message in ready("mirror", "add", *arguments, code=code).stderr
    ready("node", "create", "plans")
    assert rows(ready) == []


def test_add_of_what_is_there_is_refused(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")

    same = ready("mirror", "add", ADDRESS, "--node", "plans", code=Exit.CONFIG)
    assert "the mirror b is for this node and address already" in same.stderr
    named = ready("mirror", "add", WEB, "--node", "plans", "--name", "b", code=Exit.CONFIG)
    assert "there is a mirror b: give another --name" in named.stderr


def test_remove_ends_it_and_names_what_is_not_there(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")

    assert "Removed the mirror b; the node plans remains" in ready("mirror", "remove", "b").stdout
    assert rows(ready) == []
    assert "there is no mirror b" in ready("mirror", "remove", "b", code=Exit.CONFIG).stderr
    assert "There are no mirrors." in ready("mirror", "list").stderr


def test_restart_lets_it_begin_anew_and_names_what_is_not_there(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")

    assert "The mirror b starts again" in ready("mirror", "restart", "b").stdout
    assert "there is no mirror c" in ready("mirror", "restart", "c", code=Exit.CONFIG).stderr


def configure(text: str) -> None:
    path = Path("smartfeeds.toml")
    path.write_text(f'{path.read_text()}\n[[mirror]]\nname = "one"\nnode = "plans"\naddress = "{ADDRESS}"\n{text}')


def test_mirrors_of_the_configuration_are_listed_before_the_service_has_run(ready: Run) -> None:
    ready("node", "create", "plans")
    configure('direction = "out"\n')

    assert rows(ready) == [
        {"name": "one", "node": "plans", "direction": "out", "address": ADDRESS, "from": "configuration"}
    ]


def test_mirror_of_the_configuration_is_removed_there(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "one")
    write(partial(_configured, name="one"))

    assert "take its [[mirror]] out" in ready("mirror", "remove", "one", code=Exit.CONFIG).stderr


def _configured(tx: WriteTx, _context: object, name: str) -> None:
    row = stored_mirrors.mirror(tx, name)
    assert row is not None
    stored_mirrors.put(tx, MirrorRow(replace(row.mirror), configured=True))


def test_status_of_a_mirror_that_has_not_begun_ends_with_1(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")

    result = ready("mirror", "status", code=Exit.FAILED)
    assert "the node plans does not exist here yet" in result.stdout
    assert "incoming: not started yet, 0 changes received" in result.stdout


REFUSALS = (refusal("i1", "too big", T_US),)


def test_status_tells_lag_failures_conflicts_and_refusals(ready: Run) -> None:
    """For people; what others wrote stays on its line."""
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b", "--direction", "both")
    ready("node", "create", "plans")
    taken = MirrorState("x", T_US, Failure(3, T_US, T_US, "away\nfor long"), 12, 2, 1, REFUSALS, "a note")
    change("b", **{"in": taken, "out": MirrorState("", T_US, items=1)})

    text = ready("mirror", "status", "b", code=Exit.FAILED).stdout
    assert "b  plans  both  xmpp:feeds.b.example?;node=plans" in text
    assert "  incoming: behind by " in text
    assert "12 changes received, 2 conflicts met, in step last at 2026-01-01T00:00:00Z" in text
    assert "since 2026-01-01T00:00:00Z: away for long" in text
    assert "a note" in text
    again = "smartfeeds mirror restart b requests them again"
    assert f"1 item refused ({again}), the last of them:\n      i1: too big" in text
    assert "  outgoing: in step, 1 change sent" in text


def test_status_in_json_has_everything(ready: Run) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b", "--direction", "both")
    ready("node", "create", "plans")
    change(
        "b",
        **{
            "in": MirrorState("x", T_US, items=3, refused=1, reasons=(refusal("i", "bad", T_US),)),
            "out": MirrorState(),
        },
    )

    (found,) = json.loads(ready("mirror", "status", "--json", code=Exit.FAILED).stdout)
    incoming, outgoing = found.pop("directions")
    assert found == {
        "name": "b",
        "node": "plans",
        "direction": "both",
        "address": ADDRESS,
        "from": "mirror add",
        "node_exists": True,
        "items_with_conflicts": 0,
    }
    assert (incoming["direction"], incoming["in_step"], incoming["lag_s"], incoming["changes"]) == ("in", False, 0.0, 3)
    assert incoming["refusals"] == [{"id": "i", "reason": "bad", "at": "2026-01-01T00:00:00Z"}]
    assert (outgoing["direction"], outgoing["in_step"], outgoing["waiting"]) == ("out", True, 0)


def test_items_refused_are_missing_until_the_mirror_begins_anew(ready: Run) -> None:
    """Such a mirror is not in step, for people, scripts and metrics."""
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")
    ready("node", "create", "plans")
    change("b", **{"in": MirrorState("x", T_US, items=3, refused=3, reasons=(refusal("i", "bad", T_US),))})

    assert "incoming: in step, 3 items rejected, 3 changes" in ready("mirror", "status", code=Exit.FAILED).stdout
    ready("mirror", "restart", "b")
    change("b", **{"in": MirrorState("x", T_US, epoch=1)})
    assert "incoming: in step, 0 changes" in ready("mirror", "status").stdout


@pytest.mark.parametrize(
    ("means", "text"), [("held pull", "in step, followed by held pull, 3"), ("polled", "in step, polled, 3")]
)
def test_status_tells_how_a_mirror_over_http_learns_of_changes(ready: Run, means: str, text: str) -> None:
    ready("mirror", "add", "https://b.example/feeds/plans/", "--node", "plans", "--name", "b")
    ready("node", "create", "plans")
    change("b", **{"in": MirrorState("x", T_US, items=3, means=means)})

    assert f"  incoming: {text} changes received, read last at " in ready("mirror", "status").stdout
    (found,) = json.loads(ready("mirror", "status", "--json").stdout)
    assert found["directions"][0]["means"] == means


def test_outgoing_direction_that_fails_is_not_in_step_though_nothing_waits(ready: Run) -> None:
    """As the metric says it."""
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b", "--direction", "out")
    ready("node", "create", "plans")
    consumer = Consumer(1, f"mirror:{ADDRESS}")
    write(lambda tx, _context: tx.set_wait(consumer, Failure(2, T_US, T_US, "the disk is full")))

    assert "outgoing: behind by " in ready("mirror", "status", code=Exit.FAILED).stdout


@pytest.mark.needs("sync_documents")
def test_status_tells_how_many_items_have_conflicts(ready: Run, tmp_path: Path) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b")
    for by in ("alice", "bob"):
        history = "".join(
            f"<sx:history sequence='{n}' when='2026-01-0{n}T10:00:00Z' by='{who}'/>" for n, who in ((2, by), (1, "ed"))
        )
        (tmp_path / "x.xml").write_text(
            "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:sx='http://feedsync.org/2007/feedsync'><title>x</title>"
            f"<entry><id>urn:x:1</id><title>{by}</title><updated>2026-01-01T00:00:00Z</updated>"
            f"<sx:sync id='x' updates='2'>{history}</sx:sync></entry></feed>"
        )
        ready("import", "x.xml", "--node", "plans", "--sync")

    assert "1 item with conflicts: smartfeeds conflicts plans" in ready("mirror", "status", code=Exit.FAILED).stdout
    (found,) = json.loads(ready("mirror", "status", "--json", code=Exit.FAILED).stdout)
    assert found["items_with_conflicts"] == 1


def test_status_counts_what_waits_to_be_sent(ready: Run, tmp_path: Path) -> None:
    ready("mirror", "add", ADDRESS, "--node", "plans", "--name", "b", "--direction", "out")
    ready("node", "create", "plans")
    entries = "".join(
        f"<entry><id>urn:x:{n}</id><title>{n}</title><updated>2026-01-01T00:00:00Z</updated></entry>" for n in range(3)
    )
    (tmp_path / "x.xml").write_text(f"<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title>{entries}</feed>")
    ready("import", "x.xml", "--node", "plans")

    assert "3 changes waiting" in ready("mirror", "status", code=Exit.FAILED).stdout


def test_status_of_a_mirror_that_is_not_there(ready: Run) -> None:
    ready("node", "create", "plans")

    assert "there is no mirror x" in ready("mirror", "status", "x", code=Exit.USAGE).stderr
    assert "There are no mirrors." in ready("mirror", "status").stderr
