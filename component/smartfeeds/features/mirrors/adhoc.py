"""The ad-hoc command that adds a mirror (`smartfeeds mirror add`)."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.mirrors.mirror import EVERY_S, LEAST_EVERY_S, Direction, make_mirror
from smartfeeds.features.mirrors.requests import (
    AddMirror,
    MirrorNamed,
)
from smartfeeds.features.mirrors.resources import MAX_NAME_BYTES
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import choice_field, flag_field, form_step, jid_field, number_field, text_field
from smartfeeds.xmpp.commands import CommandResult, StepInput, note_result, project_command
from smartfeeds.xmpp.side import XmppSide

_MAX_ADDRESS_BYTES = 4_096
_MAX_EVERY_S = 86_400 * 7

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
    "name", "Name", MAX_NAME_BYTES, required=False, description="Empty: a name made of node and address."
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


COMMANDS = (
    project_command(
        "add-mirror",
        "Add a mirror",
        Audience.ADMINS,
        form_step(_ADDRESS, _NODE, _DIRECTION, _NAME, _OWNER, _EVERY, _OWN_EDITS, _PRIVATE),
        _add,
    ),
)


XMPP = XmppSide(commands=COMMANDS)
