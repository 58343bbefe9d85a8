"""Ad-hoc commands (XEP-0050): the table of commands, their requests and their forms (xep-map 46, 239, 240).

A command is a sequence of steps. A step receives the submitted fields and returns a form or the result; the last step
returns the result. Hidden fields of a form carry what later steps need, so any process can answer any step. Steps work
through requests to the service, which checks the requester's rights each time.

All texts are English and marked as such. The language that servers add to stanzas is not a reason to reject a request.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.options import FormFields
from smartfeeds.core.text import attribute, escape
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.standing import Audience, GetStanding, Standing
from smartfeeds.xmpp.command_sessions import CommandSessions, StepForm
from smartfeeds.xmpp.elements import Element, only
from smartfeeds.xmpp.forms import FormField, FormTable, X, encode_form, read_fields
from smartfeeds.xmpp.namespaces import COMMANDS, PROJECT, tag
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

T = TypeVar("T")
Handle = Callable[[Request], Awaitable[object]]

COMMAND = tag(COMMANDS, "command")
ABOUT_BYTES = 2_048  # longest part of a request that an error response repeats
STEP = "step"  # the hidden field with the number of the step; no command may use this name
# The hidden fields of a list in pages: the page of this form, and those before and after it.
PAGE, PREVIOUS_PAGE, NEXT_PAGE = "page", "page-previous", "page-next"
# XEP-0050 3.5.1: a form of type cancel counts as submitted; the action alone cancels.
_SUBMITTED = frozenset({"submit", "cancel"})
# XEP-0050 section 4.1.
ACTIONS = ("execute", "prev", "next", "complete", "cancel")
CommandStatus = Literal["executing", "completed", "canceled"]


@dataclass(frozen=True, slots=True)
class CommandNote:
    """A note to the user, with its severity (XEP-0050 section 4.3)."""

    text: str
    severity: Literal["info", "warn", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Pages:
    """A page of a list and the pages around it: positions for `StepInput.page`, empty where the list begins or ends."""

    this: str = ""
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A form to fill in. Hidden fields carry data for later steps.

    With `pages` the form shows a page of a list: `prev` and `next` lead to other pages, `complete` to the next step.
    """

    fields: tuple[FormField, ...]
    title: str = ""
    instructions: str = ""
    notes: tuple[CommandNote, ...] = ()
    pages: Pages | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The end of a command. A failure has a note of severity error (XEP-0050 section 3.6). `fields` and `table` are the
    result. `form_type` is its FORM_TYPE, empty for that of the command."""

    notes: tuple[CommandNote, ...] = ()
    fields: tuple[FormField, ...] = ()
    table: FormTable | None = None
    form_type: str = ""


def note_result(text: str, severity: Literal["info", "warn", "error"] = "info") -> CommandResult:
    """Returns the end of a command with one note."""
    return CommandResult((CommandNote(text, severity),))


@dataclass(frozen=True, slots=True)
class StepInput:
    """The input of a step: the requester, the address that the request was sent to, and the submitted fields."""

    actor: Jid
    service: str
    values: FormFields
    handle: Handle

    def one(self, var: str, max_bytes: int = MAX_ID_BYTES) -> str:
        """Returns the value of a field. Raises CommandError(BAD_PAYLOAD) unless it has 1 to `max_bytes` bytes."""
        values = self.values.get(var, ())
        if len(values) != 1 or not 0 < len(values[0].encode()) <= max_bytes:
            raise CommandError(
                CommandFault.BAD_PAYLOAD, f"the field {var} must have one value of 1 to {max_bytes} bytes"
            )
        return values[0]

    @property
    def page(self) -> str:
        """The page of a list that the user requests: a position of `Pages`, empty for the first page."""
        return "".join(self.values.get(PAGE, ())[:1])

    async def answer(self, request: Request, kind: type[T]) -> T:
        """Returns the service's response. Raises FeedError, StoreError."""
        return await ask(self.handle, request, kind)


Step = Callable[[StepInput], Awaitable[CommandForm | CommandResult]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its disco node, its name for users, the FORM_TYPE of its forms, its steps, and who may run it.

    The node is a URI of this project or of XEP-0133, because commands and feeds share one namespace of nodes (XEP-0050
    section 3.2). With `form_first` a client may submit the only form of the command in its first request.
    """

    node: str
    name: str
    form_type: str
    steps: tuple[Step, ...]
    audience: Audience = Audience.EVERYBODY
    form_first: bool = False

    @property
    def has_one_form(self) -> bool:
        """Whether a submitted form can only be that of the first step, so that it needs no number."""
        return len(self.steps) == 2

    def moves_after(self, form: StepForm) -> Mapping[str, StepForm]:
        """Returns the step and the values that each allowed action leads to after a form, the default last."""
        step, values = form.step, form.hidden
        moves: dict[str, StepForm] = {}
        if values.get(PREVIOUS_PAGE):
            moves["prev"] = StepForm(step, {**values, PAGE: values[PREVIOUS_PAGE]})
        elif step:
            moves["prev"] = StepForm(step - 1, values)
        paged = PAGE in values
        moves["complete" if paged or step + 2 == len(self.steps) else "next"] = StepForm(step + 1, values)
        if paged and values.get(NEXT_PAGE):
            moves["next"] = StepForm(step, {**values, PAGE: values[NEXT_PAGE]})
        return moves


def project_command(name: str, title: str, audience: Audience, *steps: Step, form_type: str = "") -> Command:
    """Returns a command whose node is a URI of this project. Its forms have this URI as their type by default."""
    node = f"{PROJECT}#{name}"
    return Command(node, title, form_type or node, steps, audience)


def table_of(*commands: Command) -> Mapping[str, Command]:
    """Returns commands by node."""
    return {command.node: command for command in commands}


@dataclass(frozen=True, slots=True)
class RunCommand(Request):
    """A request to run the step with this number. `step` None cancels the session."""

    command: Command
    session: str
    step: int | None
    values: FormFields


@dataclass(frozen=True, slots=True)
class ListCommands(Request):
    """A request for the commands that the actor may run (XEP-0050 2.2)."""


@dataclass(frozen=True, slots=True)
class CommandList(Answer):
    """Commands in the order of the table."""

    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The response to a step: the state of the session, a form or result, and the actions allowed next."""

    node: str
    session: str
    status: CommandStatus
    actions: tuple[str, ...] = ()
    form: str = ""
    notes: tuple[CommandNote, ...] = ()


class CommandRunner:
    """Reads and runs the commands of a table. `handle` sends a request to the service."""

    def __init__(self, table: Mapping[str, Command], handle: Handle, sessions: CommandSessions) -> None:
        self._table = table
        self._handle = handle
        self._sessions = sessions

    def read(self, element: Element, actor: Jid, service: str) -> RunCommand:
        """Returns the step that a `<command/>` requests. Raises FeedError."""
        node, action = element.get("node"), element.get("action", "execute")
        if node is None:
            raise FeedError(Condition.BAD_REQUEST, "the command has no node; name a command by its node")
        command = self._table.get(node)
        if command is None:
            raise FeedError(
                Condition.ITEM_NOT_FOUND, f"no such command; the items of node {COMMANDS} list the commands"
            )
        if action not in ACTIONS:
            raise CommandError(CommandFault.MALFORMED_ACTION, f"unknown action; the actions are {', '.join(ACTIONS)}")
        session, holder = element.get("sessionid"), (actor.bare_text, service, node)
        if command.form_first and action == "execute" and not self._sessions.belongs_to(session or "", *holder):
            session = None  # Movim creates an id of its own
        if session is None:
            if action != "execute":
                raise CommandError(CommandFault.BAD_SESSIONID, f"{action} requires a sessionid")
            values = _submitted(element, command) or {}
            step = int(command.form_first and bool(values))
            return RunCommand(actor, service, command, self._sessions.begin(*holder), step, values)
        form = self._sessions.check(session, *holder)
        if action == "cancel":
            return RunCommand(actor, service, command, session, None, {})
        submission = _submission(_submitted(element, command), command, form)
        moves = command.moves_after(submission)
        # `execute` is the default action of the form (XEP-0050 section 3.4).
        move = list(moves.values())[-1] if action == "execute" else moves.get(action)
        if move is None:
            raise CommandError(
                CommandFault.BAD_ACTION, f"this form allows the actions {' or '.join((*moves, 'cancel'))}"
            )
        return RunCommand(actor, service, command, session, move.step, move.hidden)

    async def list_commands(self, request: ListCommands) -> CommandList:
        """Returns the commands that the actor may run. Raises StoreError."""
        standing = await self._standing(request)
        return CommandList(tuple(command for command in self._table.values() if command.audience.admits(standing)))

    async def _standing(self, request: Request) -> Standing:
        return await ask(self._handle, GetStanding(request.actor, request.service), Standing)

    async def _check(self, request: RunCommand) -> None:
        """Raises FeedError(FORBIDDEN) unless the actor may run the command now."""
        audience = request.command.audience
        if audience is not Audience.EVERYBODY and not audience.admits(await self._standing(request)):
            raise FeedError(Condition.FORBIDDEN, f"this command is for {audience.value}")

    async def run(self, request: RunCommand) -> CommandReply:
        """Runs a step. Raises FeedError, StoreError; the session then continues from the form that it sent last."""
        command, session = request.command, request.session
        if request.step is None:
            self._sessions.remember(session, None)
            return CommandReply(command.node, session, "canceled")
        await self._check(request)
        outcome = await command.steps[request.step](
            StepInput(request.actor, request.service, request.values, self._handle)
        )
        if isinstance(outcome, CommandResult):
            self._sessions.remember(session, None)
            # Gajim shows no table without a title.
            title = command.name if outcome.table else ""
            has_result = outcome.fields or outcome.table
            result = (
                encode_form(
                    "result", outcome.form_type or command.form_type, outcome.fields, title=title, table=outcome.table
                )
                if has_result
                else ""
            )
            return CommandReply(command.node, session, "completed", (), result, outcome.notes)
        fields = (*outcome.fields, *_page_fields(outcome.pages))
        hidden = {field.var: field.values for field in fields if field.type == "hidden"}
        step_form = StepForm(request.step, hidden)
        self._sessions.remember(session, step_form)
        if not command.has_one_form:
            fields = (FormField(STEP, "hidden", (str(request.step),)), *fields)
        title = outcome.title or command.name
        form = encode_form("form", command.form_type, fields, title=title, instructions=outcome.instructions)
        actions = tuple(command.moves_after(step_form))
        return CommandReply(command.node, session, "executing", actions, form, outcome.notes)


def _page_fields(pages: Pages | None) -> tuple[FormField, ...]:
    if pages is None:
        return ()
    positions = {PREVIOUS_PAGE: pages.previous, NEXT_PAGE: pages.next}
    others = (FormField(var, "hidden", (position,)) for var, position in positions.items() if position)
    return (FormField(PAGE, "hidden", (pages.this,)), *others)


def _submitted(element: Element, command: Command) -> FormFields | None:
    """Returns the fields of the form in a command, or None if there is no form. Raises CommandError(BAD_PAYLOAD)."""
    try:
        form = only(element.iterchildren(X), X)
        if form is None:
            return None
        if form.get("type", "submit") not in _SUBMITTED:
            raise FeedError(Condition.BAD_REQUEST, "the form must have type submit")
        return read_fields(form, command.form_type)
    except FeedError as error:
        raise CommandError(CommandFault.BAD_PAYLOAD, error.text) from None


def _submission(values: FormFields | None, command: Command, form: StepForm | None) -> StepForm:
    """Returns the step whose form was submitted, with its values. Raises CommandError(BAD_PAYLOAD)."""
    if values is None:
        if form is None:
            raise CommandError(CommandFault.BAD_PAYLOAD, "the form is missing; send it, or start without a sessionid")
        return form
    # The form of get-pending must have a single field (XEP-0060 8.7.2), and clients may send that field alone.
    number_values = values.get(STEP, ("0",) if command.has_one_form else ())
    step = next((number for number in range(len(command.steps) - 1) if number_values == (str(number),)), None)
    if step is None:
        raise CommandError(
            CommandFault.BAD_PAYLOAD, f"the hidden field {STEP} is missing or wrong; send all hidden fields back"
        )
    return StepForm(step, values)


def encode_about(element: Element) -> bytes:
    """Returns the part of a `<command/>` that an error repeats, so that clients can find the session (XEP-0050 3.7)."""
    attributes = [(name, element.get(name)) for name in ("node", "sessionid", "action")]
    names = "".join(f" {name}='{attribute(value)}'" for name, value in attributes if value)
    command = f"<command xmlns='{COMMANDS}'{names}/>".encode()
    return command if len(command) <= ABOUT_BYTES else b""


def encode_command(reply: CommandReply) -> bytes:
    """Returns the `<command/>` of a response. Raises ForbiddenCharacterError."""
    actions = ""
    if reply.actions:
        names = "".join(f"<{action}/>" for action in ACTIONS if action in reply.actions)
        actions = f"<actions execute='{reply.actions[-1]}'>{names}</actions>"
    notes = "".join(f"<note type='{note.severity}'>{escape(note.text)}</note>" for note in reply.notes)
    return (
        f"<command xmlns='{COMMANDS}' node='{attribute(reply.node)}' sessionid='{attribute(reply.session)}'"
        f" status='{reply.status}' xml:lang='en'>{actions}{reply.form}{notes}</command>"
    ).encode()
