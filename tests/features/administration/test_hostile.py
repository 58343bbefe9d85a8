"""Hostile values in every field of every ad-hoc command: an error or a result, never a fault of the service.

The commands come from the table, so a new command is tested too. It needs a line in `VALID` if its forms cannot be
sent back as they come.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from smartfeeds.app.lifecycle import App
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.telemetry import log_level, set_log_level
from smartfeeds.xmpp.commands import Command
from support.commands import COMMANDS
from support.component import ALICE, NS, Component, Element, Starter, bare, fields, submit
from support.dialog import Dialog, actions, condition, status

ADMIN = "root@example.org/desk"
LONG = "x" * 20_000
# Characters that XML allows, and that no name, address or number should contain.
CONTROLS = "a\tb\nc\u0085d\u202ee\ufffd"
# What makes a form valid that has no default for each required field, by command.
VALID: dict[str, dict[str, str]] = {
    "set-affiliations": {"jids": "bob@example.org"},
    "set-subscriptions": {"jids": "bob@example.org", "state": "none"},
    "add-token": {"feed": "tea"},
    "add-mirror": {"address": "xmpp:feeds.b.example?;node=plans", "node": "plans"},
    "add-source": {"url": "https://blog.example/feed", "node": "tea"},
    "announce": {"announcement": "Tea"},
}


@dataclass(frozen=True, slots=True)
class Hostile:
    """Values of a field. `refused` are the types of fields for which they must be an error."""

    name: str
    values: tuple[str, ...]
    refused: frozenset[str] = frozenset()


SINGLE = frozenset({"text-single", "list-single", "boolean", "jid-single", "text-private"})
VALUES = (
    Hostile("missing", ()),
    Hostile("empty", ("",)),
    Hostile("too long", (LONG,), SINGLE | {"jid-multi", "text-multi"}),
    Hostile("control characters", (CONTROLS,), frozenset({"list-single", "boolean", "jid-single", "jid-multi"})),
    Hostile(
        "of another type", ("1e9 <&>'\" NaN -1 @@",), frozenset({"list-single", "boolean", "jid-single", "jid-multi"})
    ),
    Hostile("not offered", ("never offered",), frozenset({"list-single", "boolean"})),
    Hostile("twice", ("true", "true"), SINGLE),
    Hostile("many", tuple(f"u{number}@example.org" for number in range(2_000)), SINGLE | {"jid-multi", "text-multi"}),
)


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Component]":  # type: ignore[misc]
    """A component with an admin, a node, a token and a mirror. Nothing pauses, stops or is mirrored."""

    async def sleep(_seconds: float) -> None:
        """No pause."""

    async def look() -> None:
        """No mirror."""

    level = log_level()
    monkeypatch.setattr("support.component.App", partial(App, sleep=sleep))
    component = await start(pubsub={"admins": [bare(ADMIN)]}, run={"restarts": True})
    monkeypatch.setattr(component.app.parts.get(Mirrors), "look", look)
    await component.create(ALICE, "tea")
    for name in ("add-token", "add-mirror"):
        dialog = Dialog(component, ADMIN, name)
        await dialog.begin()
        assert status(await dialog.go(**VALID[name])) == "completed"
    yield component
    set_log_level(level)


def short(command: Command) -> str:
    """The name of a command without its namespace."""
    return command.node.rpartition("#")[2]


async def walk(service: Component, command: Command, steps: int) -> Dialog:
    """The dialog after so many valid forms."""
    dialog = Dialog(service, ADMIN, command.node)
    await dialog.begin()
    for _ in range(steps):
        await dialog.go(**fitting(dialog))
    return dialog


def fitting(dialog: Dialog) -> dict[str, str]:
    """The valid values for the newest form."""
    assert dialog.answer is not None
    known = fields(dialog.answer)
    return {var: value for var, value in VALID.get(dialog.node.rpartition("#")[2], {}).items() if var in known}


def inputs(answer: Element) -> dict[str, str]:
    """The types of the fields of a form by their names; hidden ones are inputs for an attacker."""
    return {str(each.get("var")): str(each.get("type")) for each in answer.iterfind(".//x:field[@var]", NS)}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=short)
async def test_hostile_values_of_every_field_do_no_harm(service: Component, command: Command) -> None:
    """The component reports faults at its end: internal errors, a second answer, a closed link."""
    wrong: list[str] = []
    for steps in range(len(command.steps) - 1):
        dialog = await walk(service, command, steps)
        assert dialog.answer is not None
        if status(dialog.answer) == "completed":
            break  # a list of one page has no further form
        for var, kind in inputs(dialog.answer).items():
            for hostile in VALUES:
                dialog = await walk(service, command, steps)
                answer = await dialog.send(filled(dialog, var, hostile.values))
                if kind in hostile.refused and answer.get("type") != "error":
                    wrong.append(f"{short(command)}: {var} ({kind}) {hostile.name} is accepted")
                if answer.get("type") == "error":
                    assert condition(answer)
    assert wrong == []
    assert await service.item_ids(ADMIN, "tea") == [] or command.node.endswith("#delete-node")


def filled(dialog: Dialog, var: str, values: tuple[str, ...]) -> str:
    """The valid form with other values of one field."""
    assert dialog.answer is not None
    known = {name: texts for name, texts in fields(dialog.answer).items() if name != "None"}
    changes = {name: [text] for name, text in fitting(dialog).items()}
    return submit({dialog.full(name): texts for name, texts in (known | changes).items()} | {var: list(values)})


@pytest.mark.parametrize("xml", ["<x xmlns='jabber:x:data' type='submit'/>", "<x xmlns='urn:x'/>", "<y/>"])
async def test_forms_without_fields_do_no_harm(service: Component, xml: str) -> None:
    """In every command, each time in a new session; then the link still works."""
    for command in COMMANDS.values():
        for action in ("", "next", "prev", "complete"):
            dialog = await walk(service, command, 0)
            answer = await dialog.send(xml, action)
            assert answer.get("type") in ("result", "error"), (short(command), action)
        assert await service.item_ids(ADMIN, "tea") == [], short(command)


async def test_every_form_works_in_the_windows_of_clients(service: Component) -> None:
    """What the windows of Gajim and of Cheogram, the variant of Conversations with commands, need: a form in every
    stage, no table in it, known types, labels, lists with a value, the default action among the actions."""
    for command in COMMANDS.values():
        await judge_forms(service, command)


async def judge_forms(service: Component, command: Command) -> None:
    types = {"hidden", "fixed", "boolean", "text-single", "text-multi", "list-single", "jid-single", "jid-multi"}
    for steps in range(len(command.steps) - 1):
        place = (short(command), steps)
        dialog = await walk(service, command, steps)
        answer = dialog.answer
        assert answer is not None
        if status(answer) == "completed":
            break  # a list of one page has no further form
        (form,) = answer.iterfind(".//x:x", NS)
        default, names = actions(answer)
        assert default in names, place
        assert form.findtext("x:title", namespaces=NS), place
        assert form.find("x:reported", NS) is None, place
        for field in form.iterfind("x:field", NS):
            kind = field.get("type")
            assert kind in types, (place, field.get("var"))
            assert kind in ("hidden", "fixed") or field.get("label"), (place, field.get("var"))
            options = [option.findtext("x:value", namespaces=NS) for option in field.iterfind("x:option", NS)]
            values = [value.text or "" for value in field.iterfind("x:value", NS)]
            # Without a value Gajim shows the first choice, but sends nothing.
            assert kind != "list-single" or (values and set(values) <= set(options)), (place, field.get("var"))
            assert len(values) <= 1 or kind in ("jid-multi", "text-multi", "hidden"), (place, field.get("var"))
