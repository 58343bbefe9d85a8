"""`smartfeeds prefetch`: lists, the log, and files that are asked for."""

import asyncio
import json
from pathlib import Path

import pytest

from smartfeeds.cli.offline import read_offline
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import SourceSettings, new_source, publisher_of
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import EnclosureState, FileArrival
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.enclosures import note_enclosures
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.payload import Payload
from smartfeeds.service.importing import describe_node
from support.service import stored_service
from support.shell import Run

DAY_US = 86_400_000_000
URL = "https://media.example/a.mp3"


@pytest.fixture
def ready(run: Run) -> Run:
    """A folder with a configuration that loads enclosures in advance."""
    run("init", "feeds.a.example")
    path = Path("smartfeeds.toml")
    text = path.read_text()
    assert "[http]" in text
    text = text.replace("[http]", '[prefetch]\nfolder = "enclosures"\n\n[http]', 1)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("base_url"))
    path.write_text(text.replace("[http]", '[http]\nbase_url = "https://feeds.a.example"', 1))
    return run


async def fill(**changes: object) -> str:
    """A source with one enclosure, whose row has these fields. Returns the name of its file."""

    def work(tx, context):
        source = add_source(tx, context, new_source("news", "https://blog.example/f", 0, SourceSettings(prefetch=True)))
        describe_node(tx, context, "news", publisher_of(source, context.policy.domain), {}, {})
        node = tx.node("news")
        link = f'<link rel="enclosure" href="{URL}" type="audio/mpeg" length="4000"/>'
        payload = Payload(f'<entry xmlns="http://www.w3.org/2005/Atom"><title>t</title>{link}</entry>'.encode())
        note_enclosures(tx, context, source, node, [ImportedItem("one", None, None, payload)])
        return enclosure_rows.enclosures(tx, 0, 1)[0].digest

    async with stored_service() as service:
        digest = await service.write(work)
    await change(**changes)
    return digest


async def change(**changes: object) -> None:
    """Changes the row of the only enclosure."""
    async with stored_service() as service:
        await service.store.write(
            lambda tx: enclosure_rows.put(tx, enclosure_rows.enclosures(tx, 0, 1)[0]._replace(**changes))
        )


def read(run: Run, *arguments: str) -> list[dict[str, object]]:
    result = run("prefetch", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def test_list_shows_state_and_progress(ready: Run) -> None:
    """[PRE-036] The size of a partial file is that on the disk."""
    digest = await fill(reason="ended early", failures=1, total_bytes=2_000)
    part = EnclosureFolder(Path("enclosures")).part_path(digest)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 500)
    (row,) = await asyncio.to_thread(read, ready, "list")
    del row["since"]
    assert row == {
        "node": "news",
        "item": "one",
        "state": "waiting",
        "bytes": 500,
        "of_bytes": 2_000,
        "percent": 25,
        "reason": "ended early",
        "failures": 1,
        "address": URL,
    }
    assert await asyncio.to_thread(read, ready, "list", "--node", "other") == []
    result = await asyncio.to_thread(ready, "prefetch", "list")
    assert "0 files, 0 of 10,000,000,000 bytes" in result.stderr
    assert "window" in result.stderr


async def test_list_of_complete_files(ready: Run) -> None:
    """[PRE-036]"""
    await fill(state=EnclosureState.ARRIVED, length_bytes=3_000)
    (row,) = await asyncio.to_thread(read, ready, "list")
    assert (row["state"], row["bytes"], row["of_bytes"], row["percent"]) == ("arrived", 3_000, 3_000, 100)
    result = await asyncio.to_thread(ready, "prefetch", "list")
    assert "1 file, 3,000 of 10,000,000,000 bytes" in result.stderr


async def test_log_lists_arrivals_and_failures(ready: Run) -> None:
    """[PRE-031]"""
    await fill()
    entries = [
        FileArrival(0, 10 * DAY_US, "news", "one", URL, 5, 1.25, ""),
        FileArrival(0, 0, "x", "y", URL, 0, 0.0, "broke"),
    ]
    async with stored_service() as service:
        await service.store.write(lambda tx: [enclosure_rows.add_arrival(tx, entry, 0) for entry in entries])
    first, second = await asyncio.to_thread(read, ready, "log")
    assert first == {
        "at": "1970-01-11T00:00:00Z",
        "node": "news",
        "item": "one",
        "bytes": 5,
        "seconds": 1.2,
        "reason": "arrived",
        "address": URL,
    }
    assert (second["node"], second["reason"]) == ("x", "broke")


@pytest.mark.parametrize(("state", "code"), [(EnclosureState.ARRIVED, 0), (EnclosureState.GIVEN_UP, 1)])
async def test_now_with_wait_tells_the_result(
    ready: Run, monkeypatch: pytest.MonkeyPatch, state: EnclosureState, code: int
) -> None:
    """[PRE-008] Exit code 1 if the file has not arrived."""

    async def sleep(_seconds: float) -> None:
        """What a service does meanwhile."""
        await change(state=state, asked_us=None)

    await fill(asked_us=1)
    monkeypatch.setattr("smartfeeds.features.prefetch.enclosures.ask_for", lambda _tx, _context, _node, _item: 1)
    monkeypatch.setattr("smartfeeds.features.prefetch.command.pause", sleep)
    result = await asyncio.to_thread(ready, "prefetch", "now", "news", "one", "--wait", code=code)
    assert f"{state.value}: {URL}" in result.stdout


def test_now_names_what_is_missing(ready: Run) -> None:
    """[PRE-008]"""
    ready("node", "create", "news")
    result = ready("prefetch", "now", "news", "nothing", code=3)
    assert "the node news has no item nothing" in result.stderr


async def test_add_counts_enclosures_of_a_source(ready: Run) -> None:
    """[PRE-036] PD-7: older items when they are asked for."""
    await fill()
    result = await asyncio.to_thread(ready, "prefetch", "add", "1", "--newest", "3")
    assert result.exit_code == 0 and result.stdout.startswith("0 enclosures of the source 1")


def test_without_a_folder_nothing_can_be_switched_on(run: Run) -> None:
    """[PRE-036] The reason is told."""
    run("init", "feeds.a.example")
    for arguments in (
        ("source", "add", "https://blog.example/f", "--prefetch"),
        ("prefetch", "list"),
        ("prefetch", "now", "news", "one"),
    ):
        result = run(*arguments, code=3)
        assert "prefetch.folder is not set" in result.stderr, arguments
    run("source", "add", "https://blog.example/f")
    result = run("source", "set", "1", "--prefetch", code=3)
    assert "prefetch.folder is not set" in result.stderr


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ('[prefetch]\nfolder = "x"\n', "prefetch.folder needs http.listen and http.base_url"),
        ('[[source]]\nurl = "https://b.example/f"\nnode = "n"\nprefetch = true\n', "needs prefetch.folder"),
    ],
)
def test_start_without_a_folder_or_an_address_is_refused(run: Run, section: str, reason: str) -> None:
    """[PRE-036]"""
    run("init", "feeds.a.example")
    path = Path("smartfeeds.toml")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("base_url")]
    path.write_text("\n".join(lines) + "\n" + section)
    result = run("node", "list", code=3)
    assert reason in result.stderr


def test_settings_of_a_source(ready: Run) -> None:
    """[PRE-011]"""

    def settings() -> SourceSettings:
        (source,) = read_offline(None, lambda tx, _context: source_rows.sources(tx, 0, 2))
        return source.settings

    ready(
        "source",
        "add",
        "https://blog.example/f",
        "--prefetch",
        "--prefetch-first",
        "3",
        "--prefetch-rule",
        "yes max=1MB",
    )
    result = ready("source", "set", "1", "--prefetch-rule", "perhaps", code=3)
    assert "the rule 'perhaps' cannot be read" in result.stderr
    assert settings().prefetch_rules == ("yes max=1MB",) and settings().prefetch_first == 3
    ready("source", "set", "1", "--prefetch-rule", "", "--no-prefetch")
    assert settings().prefetch_rules == () and not settings().prefetch


def test_hold_is_a_setting_that_needs_prefetch(ready: Run) -> None:
    """[RSS-036]"""

    def settings() -> SourceSettings:
        (source,) = read_offline(None, lambda tx, _context: source_rows.sources(tx, 0, 2))
        return source.settings

    result = ready("source", "add", "https://blog.example/f", "--prefetch-hold", code=3)
    assert "switch prefetch on, too" in result.stderr
    ready("source", "add", "https://blog.example/f")
    assert "switch prefetch on, too" in ready("source", "set", "1", "--prefetch-hold", code=3).stderr
    ready("source", "set", "1", "--prefetch", "--prefetch-hold")
    assert settings().prefetch_hold and settings().prefetch
    ready("source", "set", "1", "--no-prefetch-hold")
    assert not settings().prefetch_hold
