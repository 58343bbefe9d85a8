"""Ad-hoc commands (XEP-0050): a table of them, what a peer asks of one, and what it is shown (xep-map 46, 239, 240).

A command is a row of steps. Each gets the fields that were submitted and shows a form or finishes; the last one
finishes. A form carries hidden what later steps need, so any process can answer any step. A step does its work through
requests to the service, which decides on rights each time.

All texts are English, and the answers say so: the language that servers stamp on stanzas is no reason to refuse one.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.options import FormFields
from smartfeeds.core.text import attribute, escape
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.command_sessions import Sessions, Shown
from smartfeeds.xmpp.elements import Element, only
from smartfeeds.xmpp.forms import Field, X, encode_form, read_fields
from smartfeeds.xmpp.namespaces import COMMANDS, tag
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

T = TypeVar("T")
Handle = Callable[[r.Request], Awaitable[object]]

COMMAND = tag(COMMANDS, "command")
ABOUT_BYTES = 2_048  # what an error repeats of its request at most
STEP = "step"  # the hidden field that tells which step's form it is; no field of a command has this name
# XEP-0050 3.5.1: a form of type cancel counts as submitted; the action alone cancels.
_SUBMITTED = frozenset({"submit", "cancel"})


class Move(Enum):
    """The actions of XEP-0050 4.1."""

    EXECUTE = "execute"
    NEXT = "next"
    PREV = "prev"
    COMPLETE = "complete"
    CANCEL = "cancel"


_MOVES: Mapping[str, Move] = {move.value: move for move in Move}


class Status(Enum):
    """The states of a session (XEP-0050 4.1)."""

    EXECUTING = "executing"
    COMPLETED = "completed"
    CANCELED = "canceled"


class Severity(Enum):
    """What a note is (XEP-0050 4.3)."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the person."""

    text: str
    severity: Severity = Severity.INFO


@dataclass(frozen=True, slots=True)
class Stage:
    """A form to fill in. What the steps after it need and the person does not see is in fields of type hidden."""

    fields: tuple[Field, ...]
    title: str = ""
    instructions: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a command. One that failed has a note of severity ERROR (XEP-0050 3.6); `fields` are its result."""

    notes: tuple[Note, ...]
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """What a step works with: who asks, at which address of ours, and what was submitted."""

    actor: Jid
    service: str
    values: FormFields
    handle: Handle

    def one(self, var: str, max_bytes: int = MAX_ID_BYTES) -> str:
        """The one value of a field. Raises CommandError(BAD_PAYLOAD) unless it has 1 to `max_bytes` bytes."""
        values = self.values.get(var, ())
        if len(values) != 1 or not 0 < len(values[0].encode()) <= max_bytes:
            raise CommandError(CommandFault.BAD_PAYLOAD, f"the field {var} has one value of 1 to {max_bytes} bytes")
        return values[0]

    async def answer(self, request: r.Request, kind: type[T]) -> T:
        """What the service answers. Raises FeedError, StoreError."""
        answer = await self.handle(request)
        if not isinstance(answer, kind):
            raise TypeError(f"{type(request).__name__} was answered with {type(answer).__name__}")
        return answer


Step = Callable[[Ask], Awaitable[Stage | Finished]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the disco node it is found at, its name for people, the FORM_TYPE of its forms.

    Nodes of commands are URIs of ours: they share a namespace with feeds (XEP-0050 3.2).
    """

    node: str
    name: str
    form_type: str
    steps: tuple[Step, ...]

    def offered(self, step: int) -> tuple[Move, ...]:
        """What may follow the form of a step, the default last. Before the last step that is to complete."""
        forward = Move.COMPLETE if step + 2 == len(self.steps) else Move.NEXT
        return (Move.PREV, forward) if step else (forward,)


def table_of(*commands: Command) -> Mapping[str, Command]:
    """Commands by their nodes."""
    return {command.node: command for command in commands}


@dataclass(frozen=True, slots=True)
class RunCommand(r.Request):
    """One step of a session to run, by its place in the command, with what was submitted; None: it is cancelled."""

    command: Command
    session: str
    step: int | None
    values: FormFields


@dataclass(frozen=True, slots=True)
class CommandShown:
    """The answer: how the session stands, and the form or result to show, with what may be done then."""

    node: str
    session: str
    status: Status
    offered: tuple[Move, ...] = ()
    form: str = ""
    notes: tuple[Note, ...] = ()


class Commands:
    """Reads and runs the commands of a table. `handle` is the service."""

    def __init__(self, table: Mapping[str, Command], handle: Handle, sessions: Sessions) -> None:
        self._table = table
        self._handle = handle
        self._sessions = sessions

    def read(self, element: Element, actor: Jid, service: str) -> RunCommand:
        """The step that a `<command/>` asks for. Raises FeedError."""
        command = find(self._table, element.get("node"))
        move = _MOVES.get(element.get("action", Move.EXECUTE.value))
        if move is None:
            raise CommandError(CommandFault.MALFORMED_ACTION, f"the actions are {', '.join(_MOVES)}")
        session, holder = element.get("sessionid"), (str(actor.bare), service, command.node)
        if session is None:
            if move is not Move.EXECUTE:
                raise CommandError(CommandFault.BAD_SESSIONID, f"{move.value} needs the sessionid of what was begun")
            values = _submitted(element, command) or {}
            return RunCommand(actor, service, command, self._sessions.begin(*holder), 0, values)
        shown = self._sessions.check(session, *holder)
        if move is Move.CANCEL:
            return RunCommand(actor, service, command, session, None, {})
        answered = _answered(_submitted(element, command), command, shown)
        return RunCommand(actor, service, command, session, _target(command, answered.step, move), answered.hidden)

    async def run(self, request: RunCommand) -> CommandShown:
        """Runs a step. Raises FeedError, StoreError; the session then goes on from the form that was shown last."""
        command, session = request.command, request.session
        if request.step is None:
            self._sessions.end(session)
            return CommandShown(command.node, session, Status.CANCELED)
        ask = Ask(request.actor, request.service, request.values, self._handle)
        outcome = await command.steps[request.step](ask)
        if isinstance(outcome, Finished):
            self._sessions.end(session)
            result = encode_form("result", command.form_type, outcome.fields) if outcome.fields else ""
            return CommandShown(command.node, session, Status.COMPLETED, (), result, outcome.notes)
        hidden = {field.var: field.values for field in outcome.fields if field.type == "hidden"}
        self._sessions.show(session, Shown(request.step, hidden))
        fields = (Field(STEP, "hidden", (str(request.step),)), *outcome.fields)
        form = encode_form("form", command.form_type, fields, title=outcome.title, instructions=outcome.instructions)
        offered = command.offered(request.step)
        return CommandShown(command.node, session, Status.EXECUTING, offered, form, outcome.notes)


def find(table: Mapping[str, Command], node: str | None) -> Command:
    """The command of a node. Raises FeedError: BAD_REQUEST for no name, ITEM_NOT_FOUND."""
    if node is None:
        raise FeedError(Condition.BAD_REQUEST, "a command is named by its node")
    command = table.get(node)
    if command is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such command; ask for the items of node {COMMANDS}")
    return command


def _submitted(element: Element, command: Command) -> FormFields | None:
    """The fields of the form in a command, None where there is no form. Raises CommandError(BAD_PAYLOAD)."""
    try:
        form = only(element.iterchildren(X), X)
        if form is None:
            return None
        if form.get("type", "submit") not in _SUBMITTED:
            raise FeedError(Condition.BAD_REQUEST, "the form is of type submit")
        return read_fields(form, command.form_type)
    except FeedError as error:
        raise CommandError(CommandFault.BAD_PAYLOAD, error.text) from None


def _answered(values: FormFields | None, command: Command, shown: Shown | None) -> Shown:
    """The step whose form this answers, with its values. Raises CommandError(BAD_PAYLOAD)."""
    if values is None:
        if shown is None:
            raise CommandError(CommandFault.BAD_PAYLOAD, "send the form along, or begin again without a sessionid")
        return shown
    told = values.get(STEP)
    step = next((number for number in range(len(command.steps) - 1) if told == (str(number),)), None)
    if step is None:
        raise CommandError(CommandFault.BAD_PAYLOAD, f"send the hidden fields of the form back, {STEP} among them")
    return Shown(step, values)


def _target(command: Command, answered: int, move: Move) -> int:
    """The step that an action leads to from the form of another one. Raises CommandError(BAD_ACTION)."""
    offered = command.offered(answered)
    if move is not Move.EXECUTE and move not in offered:
        allowed = " or ".join(each.value for each in (*offered, Move.CANCEL))
        raise CommandError(CommandFault.BAD_ACTION, f"here you can {allowed}")
    return answered - 1 if move is Move.PREV else answered + 1


def encode_about(element: Element) -> bytes:
    """What an error repeats of a `<command/>` (XEP-0050 3.7): clients find by it what was refused. Nothing long."""
    told = [(name, element.get(name)) for name in ("node", "sessionid", "action")]
    names = "".join(f" {name}='{attribute(value)}'" for name, value in told if value)
    repeated = f"<command xmlns='{COMMANDS}'{names}/>".encode()
    return repeated if len(repeated) <= ABOUT_BYTES else b""


def encode_command(shown: CommandShown) -> bytes:
    """The `<command/>` of an answer. Raises ForbiddenCharacterError."""
    actions = ""
    if shown.offered:
        names = "".join(f"<{move.value}/>" for move in shown.offered)
        actions = f"<actions execute='{shown.offered[-1].value}'>{names}</actions>"
    notes = "".join(f"<note type='{note.severity.value}'>{escape(note.text)}</note>" for note in shown.notes)
    return (
        f"<command xmlns='{COMMANDS}' node='{attribute(shown.node)}' sessionid='{attribute(shown.session)}'"
        f" status='{shown.status.value}' xml:lang='en'>{actions}{shown.form}{notes}</command>"
    ).encode()
