"""Ad-hoc commands for mirrors: list them with their state, add, remove and restart them (`smartfeeds mirror`)."""

from smartfeeds.core.consumers import ERROR_CHARACTERS
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.mirrors.mirror import EVERY_S, LEAST_EVERY_S, Direction, make_mirror
from smartfeeds.features.mirrors.mirror_rows import MirrorStatus, describe_standing
from smartfeeds.features.mirrors.requests import (
    AddMirror,
    ListMirrors,
    MirrorList,
    MirrorNamed,
    RemoveMirror,
    RestartMirror,
)
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import choice_field, flag_field, form_step, jid_field, number_field, text_field
from smartfeeds.xmpp.command_lists import ListPage, is_whole, list_steps, position_of
from smartfeeds.xmpp.commands import CommandForm, CommandResult, StepInput, note_result, project_command

_MAX_ADDRESS_BYTES = 4_096
_MAX_NAME_BYTES = 40
_MAX_EVERY_S = 86_400 * 7
_CHOICES = 50

_ADDRESS = text_field(
    "address", "Address", _MAX_ADDRESS_BYTES, description="xmpp:SERVICE?;node=NODE, or the web address of a feed."
)
_NODE = text_field("node", "Node", MAX_ID_BYTES, description="The local node. It is created if it does not exist.")
_DIRECTION = choice_field(
    "direction",
    "Direction",
    {
        Direction.IN.value: "Receive changes",
        Direction.OUT.value: "Send changes",
        Direction.BOTH.value: "Receive and send changes",
    },
)
_NAME = text_field(
    "name", "Name", _MAX_NAME_BYTES, required=False, description="Empty: a name made of node and address."
)
_OWNER = jid_field("owner", "Owner of a new node", required=False, description="A bare JID. Empty: the service itself.")
_EVERY = number_field("every", "Seconds between two requests", int(LEAST_EVERY_S), _MAX_EVERY_S, default=int(EVERY_S))
_OWN_EDITS = flag_field(
    "own-edits",
    "Accept own edits",
    description="Accept edits by this service that its database lacks, after a backup was restored.",
)
_PRIVATE = flag_field(
    "allow-private",
    "Allow private networks",
    description="Allow web addresses in private networks and on this machine.",
)
_MIRROR = text_field("mirror", "Mirror", _MAX_NAME_BYTES)
_COLUMNS = (
    ("name", "Name"),
    ("node", "Node"),
    ("direction", "Direction"),
    ("address", "Address"),
    ("origin", "From"),
    ("state", "State"),
    ("error", "Last error"),
)


async def _page(step: StepInput) -> ListPage:
    position = position_of(step)
    answer = await step.answer(ListMirrors(step.actor, step.service, page=position.request), MirrorList)
    return position.page(step.page, [_row(status) for status in answer.statuses], answer.result_set)


def _row(status: MirrorStatus) -> tuple[str, ...]:
    mirror = status.mirror
    states = [f"{standing.direction.value}: {describe_standing(standing)}" for standing in status.standings]
    if status.conflicted:
        states.append(f"{counted(status.conflicted, 'item')} with conflicts")
    errors = (standing.state.error for standing in status.standings)
    return (
        mirror.name,
        mirror.node,
        mirror.direction.value,
        mirror.address,
        "configuration" if status.configured else "command",
        "; ".join(states),
        "; ".join(error for error in errors if error)[:ERROR_CHARACTERS],
    )


async def _add(step: StepInput) -> CommandResult:
    try:
        mirror = make_mirror(
            node=_NODE.read(step),
            address=_ADDRESS.read(step),
            name=_NAME.read(step),
            direction=_DIRECTION.read(step),
            owner=_OWNER.read(step),
            every_s=_EVERY.read(step),
            own_edits=_OWN_EDITS.read(step),
            allow_private=_PRIVATE.read(step),
        )
    except ConfigError as error:
        raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None
    answer = await step.answer(AddMirror(step.actor, step.service, mirror), MirrorNamed)
    return note_result(f"Added the mirror {answer.name} of the node {answer.node}.")


async def _choose(step: StepInput) -> CommandForm | CommandResult:
    answer = await step.answer(ListMirrors(step.actor, step.service, page=ResultSetRequest(str(_CHOICES))), MirrorList)
    if not answer.statuses:
        return note_result("There is no mirror.")
    mirrors = [status.mirror for status in answer.statuses]
    choices = tuple((mirror.name, f"{mirror.name}: {mirror.node}") for mirror in mirrors)
    return CommandForm((_MIRROR.offer(step, choices, complete=is_whole(answer.result_set, len(choices))),))


async def _remove(step: StepInput) -> CommandResult:
    answer = await step.answer(RemoveMirror(step.actor, step.service, _MIRROR.read(step)), MirrorNamed)
    return note_result(f"Removed the mirror {answer.name}; the node {answer.node} remains.")


async def _restart(step: StepInput) -> CommandResult:
    answer = await step.answer(RestartMirror(step.actor, step.service, _MIRROR.read(step)), MirrorNamed)
    return note_result(f"The mirror {answer.name} reads and sends everything again.")


COMMANDS = (
    project_command(
        "list-mirrors", "List mirrors and their state", Audience.OWNERS, *list_steps(_COLUMNS, "mirror", _page)
    ),
    project_command(
        "add-mirror",
        "Add a mirror",
        Audience.ADMINS,
        form_step(_ADDRESS, _NODE, _DIRECTION, _NAME, _OWNER, _EVERY, _OWN_EDITS, _PRIVATE),
        _add,
    ),
    project_command("remove-mirror", "Remove a mirror", Audience.ADMINS, _choose, _remove),
    project_command("restart-mirror", "Start a mirror again from the beginning", Audience.ADMINS, _choose, _restart),
)
