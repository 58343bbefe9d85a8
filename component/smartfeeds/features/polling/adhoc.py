"""The ad-hoc command that adds a source (`smartfeeds source add`; SRC-083, SRC-084)."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.features.polling.requests import (
    AddSource,
    SourceShown,
)
from smartfeeds.features.polling.source import LEAST_CHOSEN_S, MAX_URL_BYTES, SourceSettings
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, number_field, text_field
from smartfeeds.xmpp.commands import CommandResult, StepInput, note_result, project_command
from smartfeeds.xmpp.side import XmppSide

_LONGEST_EVERY_S = 86_400

_URL = text_field("url", "Address", MAX_URL_BYTES, description="The web address of the feed.")
_NODE = text_field("node", "Node", MAX_ID_BYTES, description="The node that the feed fills.")
_EVERY = number_field(
    "every",
    "Seconds between two requests",
    0,
    _LONGEST_EVERY_S,
    default=0,
)


async def _add(step: StepInput) -> CommandResult:
    every_s = _EVERY.read(step)
    settings = SourceSettings(every_s=max(every_s, LEAST_CHOSEN_S) if every_s else None)
    request = AddSource(step.actor, step.service, _NODE.read(step), url=_URL.read(step), settings=settings)
    source = (await step.answer(request, SourceShown)).source
    return note_result(f"Added the source {source.source_no} of the node {source.node}.")


COMMANDS = (
    project_command("add-source", "Fill a node with a feed", Audience.OWNERS, form_step(_URL, _NODE, _EVERY), _add),
)


XMPP = XmppSide(commands=COMMANDS)
