"""The commands for sources through the whole component (XEP-0050)."""

import pytest

from smartfeeds.features.polling.poller import Poller
from support.component import ALICE, BOB, Component, Starter, bare
from support.dialog import Dialog, condition, notes, table

ADMIN = "root@example.org/desk"


async def run(service: Component, command: str, **values: str) -> list[str | None]:
    """The notes of a command with one form."""
    dialog = Dialog(service, ADMIN, command)
    await dialog.begin()
    return notes(await dialog.go(**values))


@pytest.fixture
async def sources(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with an admin, and with a node of Alice. The sources are not polled."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")

    async def look() -> float:
        return 3_600.0

    monkeypatch.setattr(component.app.parts.get(Poller), "look", look)
    return component


async def test_owner_manages_the_sources_of_a_node(sources: Component) -> None:
    """[SRC-083] [SRC-084] [SRC-047] Add, list, pause, resume, poll, remove; as `smartfeeds source` does it."""
    url = "https://blog.example/feed"
    dialog = Dialog(sources, ALICE, "add-source")
    await dialog.begin()
    added = notes(await dialog.go(url=url, node="tea", every="60"))
    (row,) = table(await Dialog(sources, ALICE, "list-sources").begin())
    texts = []
    for command in ("pause-source", "resume-source", "poll-source", "remove-source"):
        dialog = Dialog(sources, ALICE, command)
        await dialog.begin()
        texts += notes(await dialog.go(source="1"))

    assert added == ["Added the source 1 of the node tea."]
    assert (row["number"], row["node"], row["address"], row["state"], row["reason"]) == ("1", "tea", url, "new", "")
    assert texts == [
        "Paused the source 1.",
        "The source 1 is due now.",
        "The source 1 is due now.",
        "Removed the source 1; the node tea remains.",
    ]
    assert notes(await Dialog(sources, ALICE, "list-sources").begin()) == ["There is no source."]


async def test_strangers_have_no_sources(sources: Component) -> None:
    """[SRC-084] Only owners of the node, each up to a limit, and admins without one."""
    await sources.create(BOB, "coffee")
    dialog = Dialog(sources, BOB, "add-source")
    await dialog.begin()
    assert condition(await dialog.go(url="https://blog.example/feed", node="tea")) == "forbidden"
    dialog = Dialog(sources, BOB, "add-source")
    await dialog.begin()
    assert condition(await dialog.go(url="https://blog.example/feed", node="nobody's")) == "forbidden"
    assert await run(sources, "add-source", url="https://blog.example/feed", node="tea") == [
        "Added the source 1 of the node tea."
    ]
    assert notes(await Dialog(sources, BOB, "list-sources").begin()) == ["There is no source."]
    remove = Dialog(sources, BOB, "remove-source")
    assert notes(await remove.begin()) == ["There is no source."]


async def test_owner_has_a_limit_of_sources(start: Starter) -> None:
    """[SRC-084]"""
    service = await start(limits={"sources_per_jid": 1}, pubsub={"admins": [bare(ADMIN)]})
    await service.create(ALICE, "tea")
    for number, outcome in enumerate((None, "policy-violation")):
        dialog = Dialog(service, ALICE, "add-source")
        await dialog.begin()
        answer = await dialog.go(url=f"http://127.0.0.1:9/{number}", node="tea")
        assert (condition(answer) if outcome else None) == outcome


@pytest.mark.parametrize("values", [{"url": "ftp://a.example/"}, {"url": "feed"}, {"url": "https:///x"}])
async def test_source_with_a_wrong_address_is_refused_with_the_reason(
    sources: Component, values: dict[str, str]
) -> None:
    dialog = Dialog(sources, ALICE, "add-source")
    await dialog.begin()
    assert condition(await dialog.go(**{"node": "tea", **values})) == "not-acceptable"
