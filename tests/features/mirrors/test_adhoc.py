"""The commands for mirrors through the whole component (XEP-0050)."""

import pytest

from smartfeeds.features.mirrors.mirrors import Mirrors
from support.component import ALICE, NS, Component, Starter, bare
from support.dialog import Dialog, condition, listed, notes, table

ADMIN = "root@example.org/desk"
ADDRESS = "xmpp:feeds.b.example?;node=plans"


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with an admin, and with a node of Alice."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")

    async def look() -> None:
        """The mirrors of these tests are not started."""

    monkeypatch.setattr(component.app.parts.get(Mirrors), "look", look)
    return component


async def run(service: Component, command: str, **values: str) -> list[str | None]:
    """The notes of a command with one form."""
    dialog = Dialog(service, ADMIN, command)
    await dialog.begin()
    return notes(await dialog.go(**values))


@pytest.mark.parametrize("command", ["add-mirror", "remove-mirror", "restart-mirror"])
async def test_commands_that_change_mirrors_are_for_admins(service: Component, command: str) -> None:
    assert command in await listed(service, ADMIN)
    assert command not in await listed(service, ALICE)
    assert condition(await Dialog(service, ALICE, command).begin()) == "forbidden"


async def test_mirror_is_added_listed_restarted_and_removed(service: Component) -> None:
    """As `smartfeeds mirror` does it; the running service sees the changes in the store."""
    added = await run(service, "add-mirror", address=ADDRESS, node="plans", name="b", every="600")
    (row,) = table(await Dialog(service, ADMIN, "list-mirrors").begin())
    again = await run(service, "restart-mirror", mirror="b")
    removed = await run(service, "remove-mirror", mirror="b")

    assert added == ["Added the mirror b of the node plans."]
    assert {**row, "error": "", "state": ""} == {
        "name": "b",
        "node": "plans",
        "direction": "in",
        "address": ADDRESS,
        "origin": "command",
        "state": "",
        "error": "",
    }
    assert row["state"] == "in: not started yet"
    assert again == ["The mirror b reads and sends everything again."]
    assert removed == ["Removed the mirror b; the node plans remains."]
    assert notes(await Dialog(service, ADMIN, "list-mirrors").begin()) == ["There is no mirror."]
    assert notes(await Dialog(service, ADMIN, "remove-mirror").begin()) == ["There is no mirror."]


@pytest.mark.parametrize(
    "values",
    [
        {"address": "xmpp:feeds.example.org?;node=tea"},
        {"address": "ftp://a.example/"},
        {"address": "https://a.example/feed", "direction": "out"},
        {"address": ADDRESS, "node": "tea?order=modified"},
        {"address": ADDRESS, "name": "Bad Name"},
    ],
)
async def test_mirror_with_wrong_settings_is_refused_with_the_reason(
    service: Component, values: dict[str, str]
) -> None:
    dialog = Dialog(service, ADMIN, "add-mirror")
    await dialog.begin()
    answer = await dialog.go(**{"node": "plans", **values})

    assert condition(answer) == "not-acceptable"
    assert answer.findtext(".//st:text", namespaces=NS)


async def test_two_mirrors_of_one_name_are_refused(service: Component) -> None:
    await run(service, "add-mirror", address=ADDRESS, node="plans", name="b")
    dialog = Dialog(service, ADMIN, "add-mirror")
    await dialog.begin()

    assert condition(await dialog.go(address=ADDRESS, node="other", name="b")) == "not-acceptable"
