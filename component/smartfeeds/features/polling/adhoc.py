"""Ad-hoc commands for sources: list them with their state, add, remove, poll, pause and resume them
(`smartfeeds source`; SRC-083, SRC-084)."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import format_second
from smartfeeds.features.polling.requests import (
    AddSource,
    ChangeSource,
    ListSources,
    SourceAction,
    SourceList,
    SourceShown,
)
from smartfeeds.features.polling.source import LEAST_CHOSEN_S, MAX_URL_BYTES, Source, SourceSettings
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, number_field, text_field
from smartfeeds.xmpp.command_lists import ListPage, is_whole, list_steps, position_of
from smartfeeds.xmpp.commands import CommandForm, CommandResult, StepInput, note_result, project_command

_MAX_NUMBER_BYTES = 18
_LONGEST_EVERY_S = 86_400
_CHOICES = 50

_URL = text_field("url", "Address", MAX_URL_BYTES, description="The web address of the feed.")
_NODE = text_field("node", "Node", MAX_ID_BYTES, description="The node that the feed fills.")
_EVERY = number_field(
    "every",
    "Seconds between two requests",
    0,
    _LONGEST_EVERY_S,
    default=0,
)
_SOURCE = text_field("source", "Source", _MAX_NUMBER_BYTES)
_COLUMNS = (
    ("number", "Number"),
    ("node", "Node"),
    ("address", "Address"),
    ("state", "State"),
    ("reason", "Reason"),
    ("good", "Last good answer"),
    ("next", "Next poll"),
)


async def _page(step: StepInput) -> ListPage:
    position = position_of(step)
    answer = await step.answer(ListSources(step.actor, step.service, page=position.request), SourceList)
    return position.page(step.page, [_row(source) for source in answer.sources], answer.result_set)


def _row(source: Source) -> tuple[str, ...]:
    good, following = ("" if at is None else format_second(at) for at in (source.good_us, source.due_us))
    return str(source.source_no), source.node, source.url, source.state_word, source.reason, good, following


async def _add(step: StepInput) -> CommandResult:
    every_s = _EVERY.read(step)
    settings = SourceSettings(every_s=max(every_s, LEAST_CHOSEN_S) if every_s else None)
    request = AddSource(step.actor, step.service, _NODE.read(step), url=_URL.read(step), settings=settings)
    source = (await step.answer(request, SourceShown)).source
    return note_result(f"Added the source {source.source_no} of the node {source.node}.")


async def _choose(step: StepInput) -> CommandForm | CommandResult:
    answer = await step.answer(ListSources(step.actor, step.service, page=ResultSetRequest(str(_CHOICES))), SourceList)
    if not answer.sources:
        return note_result("There is no source.")
    choices = tuple((str(source.source_no), f"{source.node}: {source.url}") for source in answer.sources)
    return CommandForm((_SOURCE.offer(step, choices, complete=is_whole(answer.result_set, len(choices))),))


async def _change(step: StepInput, action: SourceAction) -> Source:
    text = _SOURCE.read(step)
    number = int(text) if text.isascii() and text.isdigit() else 0
    return (await step.answer(ChangeSource(step.actor, step.service, number, action), SourceShown)).source


async def _remove(step: StepInput) -> CommandResult:
    source = await _change(step, SourceAction.REMOVE)
    return note_result(f"Removed the source {source.source_no}; the node {source.node} remains.")


async def _poll(step: StepInput) -> CommandResult:
    source = await _change(step, SourceAction.POLL)
    return note_result(f"The source {source.source_no} is due now.")


async def _pause(step: StepInput) -> CommandResult:
    source = await _change(step, SourceAction.PAUSE)
    return note_result(f"Paused the source {source.source_no}.")


async def _resume(step: StepInput) -> CommandResult:
    source = await _change(step, SourceAction.RESUME)
    return note_result(f"The source {source.source_no} is due now.")


COMMANDS = (
    project_command(
        "list-sources", "List sources and their state", Audience.OWNERS, *list_steps(_COLUMNS, "source", _page)
    ),
    project_command("add-source", "Fill a node with a feed", Audience.OWNERS, form_step(_URL, _NODE, _EVERY), _add),
    project_command("remove-source", "Remove a source", Audience.OWNERS, _choose, _remove),
    project_command("poll-source", "Poll a source now", Audience.OWNERS, _choose, _poll),
    project_command("pause-source", "Pause a source", Audience.OWNERS, _choose, _pause),
    project_command("resume-source", "Resume a source", Audience.OWNERS, _choose, _resume),
)
