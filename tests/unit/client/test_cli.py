"""What `smartfeeds follow` writes."""

import asyncio
import json
import os
import signal
from dataclasses import replace

from smartfeeds.cli.follow import change_line, proof_line, run_follow
from smartfeeds.client import Atom, Change, ChangeKind, Follower, Proof
from smartfeeds.client.events import FollowCounters
from smartfeeds.client.follow import FollowerClock
from support.waiting import wait_for
from unit.client.model_link import ADDRESS, NODE, FakeTimers, ModelLink, atom

CHANGE = Change(
    ChangeKind.NEW,
    "a",
    b"<entry/>",
    NODE,
    "5",
    7,
    "bob@example.org",
    Atom(title="One", link="https://x/", author="Ann"),
)


def no_time() -> FollowerClock:
    """The clock of a follower whose timers never end."""
    return FollowerClock(FakeTimers())


def test_change_line_tells_a_person() -> None:
    """[SF-045]"""
    assert change_line(CHANGE) == "new      a  One (Ann)  https://x/"


def test_change_line_of_hostile_text_stays_one_line() -> None:
    """[SF-045]: neither line ends nor escape codes reach a terminal."""
    hostile = Change(ChangeKind.DELETED, "a\n\x1b[2J\u2028b", b"", NODE, "5")

    assert change_line(hostile) == "deleted  a  [2J b  -"


def test_change_line_json_has_everything() -> None:
    """[SF-045]"""
    assert json.loads(change_line(CHANGE, as_json=True)) == {
        "kind": "new",
        "id": "a",
        "title": "One",
        "link": "https://x/",
        "author": "Ann",
        "publisher": "bob@example.org",
        "node": NODE,
        "position": "5",
        "total": 7,
        "payload": "<entry/>",
    }


def test_proof_line_counts_as_people_do() -> None:
    """One gap, two gaps; what was met in several runs adds up."""
    once = FollowCounters(pushes=1, pulls=1, gaps_found=1, gaps_healed=1, late_pushes=1, duplicates=1, changes=1)
    proof = Proof(NODE, "5", 1, True, None, once)

    assert proof_line(proof) == (
        f"proof    in step with {NODE} at 5, 1 item; 1 change, 1 push, 1 pull, 1 gap found, 1 healed, "
        "1 duplicate dropped"
    )
    assert str(
        replace(proof, total=None, in_step=False, position="", counters=once + once + FollowCounters(pushes=3))
    ) == (
        f"not in step with {NODE} at the start, ? items; 2 changes, 5 pushes, 2 pulls, 2 gaps found, 2 healed, "
        "2 duplicates dropped"
    )


async def test_run_follow_proves_at_both_ends() -> None:
    """[SF-049] [SF-051]"""
    link, lines = ModelLink(), list[str]()
    for item_id in "ab":
        link.feed.put(atom(item_id, item_id))

    proof = await run_follow(
        lambda on_caught_up: Follower(link, ADDRESS, mirror=True, clock=no_time(), on_caught_up=on_caught_up),
        lines.append,
        until_caught_up=True,
    )

    assert [line.split()[0] for line in lines] == ["proof", "new", "new", "proof"]
    assert "2 items" in lines[0] and "0 gaps found" in lines[-1]
    assert proof.in_step and proof.total == 2 and link.closed


async def test_run_follow_until_caught_up_writes_everything_there_is() -> None:
    """[SF-045] [SF-049]"""
    link, lines = ModelLink(), list[str]()
    for item_id in "abc":
        link.feed.put(atom(item_id, item_id))

    proof = await run_follow(
        lambda on_caught_up: Follower(link, ADDRESS, mirror=True, clock=no_time(), on_caught_up=on_caught_up),
        lines.append,
        until_caught_up=True,
    )

    assert [line.split()[0] for line in lines] == ["proof", "new", "new", "new", "proof"]
    assert proof.in_step


async def test_run_follow_json_until_interrupted() -> None:
    """[SF-049]: a signal ends it in good order, with the proof."""
    link, lines, written = ModelLink(), list[str](), asyncio.Event()

    def write(line: str) -> None:
        lines.append(line)
        written.set()

    running = asyncio.ensure_future(
        run_follow(
            lambda on_caught_up: Follower(link, ADDRESS, clock=no_time(), on_caught_up=on_caught_up),
            write,
            as_json=True,
        )
    )
    await wait_for(written.wait(), "the first proof")
    written.clear()
    link.deliver(link.feed.put(atom("a", "One")))
    await wait_for(written.wait(), "the change")
    os.kill(os.getpid(), signal.SIGTERM)
    await wait_for(running, "the end of the command")

    first, change, last = (json.loads(line) for line in lines)
    assert (first["kind"], first["in_step"], first["position"], first["total"]) == ("proof", True, "", 0)
    assert (change["kind"], change["title"]) == ("new", "One")
    assert last["counters"]["changes"] == 1 and last["position"] == link.feed.newest_cursor()
