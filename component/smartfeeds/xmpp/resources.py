"""The ad-hoc commands of lists: a list as pages and a table, and actions on its entries (`service.resources`)."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.resources import Action, Caller, ListAnswer, Resource
from smartfeeds.xmpp.command_fields import CommandField, flag_field, form_step, text_field
from smartfeeds.xmpp.command_lists import PAGE_ROWS, CommandListPage, is_whole, list_steps, position_of
from smartfeeds.xmpp.commands import (
    Command,
    CommandForm,
    CommandResult,
    Pages,
    Step,
    StepInput,
    note_result,
    project_command,
)
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.node_field import NODE, ask_node
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

_CHOICES = 50  # entries in the field that selects one; with more the user writes the value (`CommandField.offer`)


def commands_of(resources: Iterable[Resource[Any]]) -> tuple[Command, ...]:
    """Returns the commands of lists. Lists that have the same command are one list for users."""
    lists: dict[str, list[Resource[Any]]] = {}
    commands = []
    for resource in resources:
        if resource.command is not None:
            lists.setdefault(resource.command.name, []).append(resource)
        commands += [_action_command(resource, action) for action in resource.actions if action.title]
    return (*map(_list_command, lists.values()), *commands)


def caller_of(step: StepInput, node: str = "") -> Caller:
    """Returns the user who runs a step."""
    return Caller(step.handle, step.actor, step.service, node)


def _list_command(parts: Sequence[Resource[Any]]) -> Command:
    resource = parts[0]
    command = resource.command
    assert command is not None  # `commands_of` passes lists with a command
    columns = tuple((column.var or column.key, column.label) for column in resource.pick(command.columns))
    steps: tuple[Step, ...] = list_steps(columns, resource.noun, partial(_page, parts))
    if resource.of_node:
        steps = (ask_node, *steps)
    if (flag := _flag_of(resource)) is not None:
        steps = (form_step(flag), *steps)
    return project_command(command.name, command.title, command.audience, *steps)


def _flag_of(resource: Resource[Any]) -> CommandField[bool] | None:
    flag = resource.narrow
    return flag and flag_field(flag.name, flag.label, default=True, description=flag.description)


async def _page(parts: Sequence[Resource[Any]], step: StepInput) -> CommandListPage:
    resource = parts[0]
    caller = caller_of(step, NODE.read(step) if resource.of_node else "")
    hidden: tuple[FormField, ...] = (NODE.hide(caller.node),) if resource.of_node else ()
    narrow = False
    if (flag := _flag_of(resource)) is not None:
        narrow = flag.read(step)
        hidden = (*hidden, flag.hide("true" if narrow else "false"))
    if resource.places is not None:
        # The list is read forward only, so the first page is the previous page of every other.
        if step.page and re.fullmatch(resource.places.pattern, step.page, re.ASCII) is None:
            raise CommandError(CommandFault.BAD_PAYLOAD, "the hidden field page is wrong; send all hidden fields back")
        entries = await _read(resource, caller, ResultSetRequest(str(PAGE_ROWS), step.page or None), narrow=narrow)
        first = resource.places.first
        pages = Pages(step.page, first if step.page not in ("", first) else "", entries.after)
        return CommandListPage(_rows(resource, entries), pages, None, hidden)
    position = position_of(step)
    entries = await _read(resource, caller, position.request, narrow=narrow)
    rows = _rows(resource, entries)
    for part in parts[1:]:
        rows += _rows(part, await _read(part, caller, position.request))
    return position.page(step.page, rows[:PAGE_ROWS], entries.result_set, hidden)


async def _read(
    resource: Resource[Any], caller: Caller, page: ResultSetRequest, *, narrow: bool = False
) -> ListAnswer[Any]:
    assert resource.read is not None
    return await resource.read(caller, page, narrow)


def _rows(resource: Resource[Any], entries: ListAnswer[Any]) -> list[tuple[str, ...]]:
    assert resource.command is not None
    columns = resource.pick(resource.command.columns)
    return [tuple(column.write(entry) for column in columns) for entry in entries.entries]


def _action_command(resource: Resource[Any], action: Action) -> Command:
    choice = resource.choice
    assert choice is not None  # an action with a title is an action on an entry
    field = text_field(choice.var, choice.label, choice.max_bytes, description=choice.description)

    async def choose(step: StepInput) -> CommandForm | CommandResult:
        page = ResultSetRequest(str(_CHOICES), before="" if choice.newest else None)
        entries = await _read(resource, caller_of(step), page)
        if not entries.entries:
            return note_result(f"There is no {resource.noun}.")
        options = [choice.option(entry) for entry in entries.entries]
        choices = tuple(reversed(options) if choice.newest else options)
        return CommandForm((field.offer(step, choices, complete=is_whole(entries.result_set, len(choices))),))

    async def perform(step: StepInput) -> CommandResult:
        outcome = await action.perform(caller_of(step), {action.key or choice.var: field.read(step)})
        return note_result(outcome.note)

    name = f"{action.name}-{resource.noun}"
    return project_command(name, action.title, action.audience, choose, perform)
