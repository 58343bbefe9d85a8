"""Every ad-hoc command from the list to its end, by a client that knows only forms (XEP-0050; xep-map 46, 239)."""

from functools import partial

import pytest

from smartfeeds.app.lifecycle import App
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.telemetry import log_level, set_log_level
from support.commands import WALK
from support.component import ALICE, BOB, EVE, Component, Element, Starter, bare
from support.form_client import FormClient

ADMIN = "root@example.org/desk"
OWNER_AND_CREATOR, CREATOR, STRANGER = ALICE, BOB, EVE
CONFLICTS, CANCEL_STOP = "urn:smartfeeds:0#conflicts", "urn:smartfeeds:0#cancel-stop"
# The commands that the service refuses because of their subject: a node that the user may not read, and a stop that was
# carried out already.
REFUSED = {
    ADMIN: {CANCEL_STOP: "item-not-found"},
    OWNER_AND_CREATOR: {},
    CREATOR: {CONFLICTS: "not-authorized"},
    STRANGER: {CONFLICTS: "not-authorized"},
}


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with a node, items, people and a request. Nothing pauses, stops or is mirrored."""

    async def nothing(_seconds: float = 0) -> None:
        """No pause and no mirror."""

    monkeypatch.setattr("support.component.App", partial(App, sleep=nothing))
    component = await start(pubsub={"admins": [bare(ADMIN)]}, run={"restarts": True})
    monkeypatch.setattr(component.app.parts.get(Mirrors), "look", nothing)
    await component.create(ALICE, "tea", access_model="authorize")
    await component.publish(ALICE, "tea", "one")
    await component.subscribe(BOB, "tea")
    return component


def client(component: Component, user: str, *, named: bool = True) -> FormClient:
    async def send(kind: str, payload: str) -> Element:
        return await component.ask(user, kind, payload)

    return FormClient(send, named)


@pytest.mark.needs("conflicts")
@pytest.mark.parametrize("named", [True, False], ids=["named action", "execute"])
@pytest.mark.parametrize("user", [ADMIN, OWNER_AND_CREATOR, CREATOR, STRANGER])
async def test_shown_commands_end_and_the_others_are_forbidden(service: Component, user: str, named: bool) -> None:
    """The commands shown are exactly those that the user may run [xep-map 46] [xep-map 239]."""
    walker = client(service, user, named=named)
    level = log_level()
    shown = await walker.commands()

    outcomes = {node: await walker.walk(node) for node in WALK}
    set_log_level(level)

    assert {node for node, outcome in outcomes.items() if outcome != "forbidden"} == set(shown)
    assert {node: outcomes[node] for node in shown if outcomes[node] != "completed"} == REFUSED[user]
