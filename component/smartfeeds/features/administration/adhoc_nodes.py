"""Ad-hoc commands for nodes: show, create, configure, purge and delete them (XEP-0060 8.1, 8.2, 8.4, 8.5).

The configuration is the form of `pubsub#owner`, and the service checks it by the same rules.
"""

from functools import partial

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.options import KIND, PUBSUB, FormFields
from smartfeeds.core.text import counted
from smartfeeds.core.times import format_second
from smartfeeds.service.managed_nodes import GetManagedNode, ManagedNode
from smartfeeds.service.requests import (
    Answer,
    Configuration,
    Configure,
    CreateNode,
    DeleteNode,
    EmptyResult,
    GetConfiguration,
    GetDefaultConfiguration,
    NodeCreated,
    Purge,
    PurgeBegun,
)
from smartfeeds.service.standing import Audience
from smartfeeds.service.work import purge_number
from smartfeeds.xmpp.command_fields import CommandField, flag_field, text_field
from smartfeeds.xmpp.commands import (
    CommandForm,
    CommandNote,
    CommandResult,
    StepInput,
    note_result,
    project_command,
)
from smartfeeds.xmpp.forms import FormField, config_fields
from smartfeeds.xmpp.namespaces import NODE_CONFIG
from smartfeeds.xmpp.node_field import NODE, ask_node

_NEW_NODE = text_field(
    "node", "Node", MAX_ID_BYTES, required=False, description="The service chooses a name if this field is empty."
)
_CONFIRMED = flag_field("confirm", "Delete the node with all its items")
_PURGE_CONFIRMED = flag_field("confirm", "Retract all items of the node")


async def _ask_new(step: StepInput) -> CommandForm:
    defaults = await step.answer(GetDefaultConfiguration(step.actor, step.service), Configuration)
    return CommandForm(
        (_NEW_NODE.again(step), *config_fields(defaults.options, defaults.limits, creating=True)),
        instructions="A feed has Atom entries and never loses them. A generic node accepts every payload.",
    )


async def _create(step: StepInput) -> CommandResult:
    node = _NEW_NODE.read(step)
    request = CreateNode(step.actor, step.service, node or None, _configuration(step.values))
    answer = await step.answer(request, NodeCreated)
    return CommandResult((CommandNote(f"Created the node {answer.node}."),), (NODE.show(answer.node),))


async def _show_configuration(step: StepInput) -> CommandForm:
    node = NODE.read(step)
    answer = await step.answer(GetConfiguration(step.actor, step.service, node), Configuration)
    return CommandForm(
        (NODE.hide(node), *config_fields(answer.options, answer.limits, creating=False)),
        instructions=f"Configure the node {node}.",
    )


async def _configure(step: StepInput) -> CommandResult:
    node = NODE.read(step)
    await step.answer(Configure(step.actor, step.service, node, _configuration(step.values)), EmptyResult)
    return note_result(f"Configured the node {node}.")


def _configuration(values: FormFields) -> FormFields:
    """Returns the fields of the configuration form without those of the command."""
    return {var: texts for var, texts in values.items() if var.startswith(PUBSUB) or var == KIND}


async def _show(step: StepInput) -> CommandResult:
    answer = await _managed(step)
    summary, node = answer.summary, answer.summary.node
    facts = (
        ("node", "Node", node.name),
        ("title", "Title", node.options.title),
        ("kind", "Kind", node.kind.value),
        ("items", "Items", str(summary.items)),
        ("deleted", "Deleted", str(summary.deleted)),
        ("conflicts", "Items in conflict", str(answer.conflicts)),
        ("subscriptions", "Subscriptions", str(summary.subscriptions)),
        ("affiliations", "Affiliations", str(answer.affiliations)),
        ("created", "Created", format_second(node.created_us)),
        ("creator", "Creator", node.creator),
        ("changed", "Last change", format_second(node.last_modified_us) if node.total else ""),
        ("index", "Filter index", "current" if answer.index_current else "behind"),
    )
    return CommandResult((), tuple(FormField(var, "text-single", (text,), label) for var, label, text in facts))


async def _managed(step: StepInput) -> ManagedNode:
    return await step.answer(GetManagedNode(step.actor, step.service, NODE.read(step)), ManagedNode)


async def _ask_end(step: StepInput, field: CommandField[bool], instructions: str) -> CommandForm:
    summary = (await _managed(step)).summary
    counts = f"{counted(summary.items, 'item')} and {counted(summary.subscriptions, 'subscription')}"
    node = NODE.read(step)
    return CommandForm(
        (NODE.hide(node), FormField("", "fixed", (f"The node {node} has {counts}.",)), field.show()),
        instructions=instructions,
    )


_ask_deletion = partial(_ask_end, field=_CONFIRMED, instructions="A deleted node cannot be restored.")
_ask_purge = partial(_ask_end, field=_PURGE_CONFIRMED, instructions="Retracted items cannot be restored.")


async def _purge(step: StepInput) -> CommandResult:
    node = NODE.read(step)
    if not _PURGE_CONFIRMED.read(step):
        return note_result(f"The items of {node} were not retracted.", "warn")
    answer = await step.answer(Purge(step.actor, step.service, node, begins=True), Answer)
    if not isinstance(answer, PurgeBegun):
        return note_result(f"Retracted all items of {node}.")
    number = purge_number(answer.node_no)
    return note_result(f"The items of {node} are being retracted. List work in progress shows it as {number}.")


async def _delete(step: StepInput) -> CommandResult:
    node = NODE.read(step)
    if not _CONFIRMED.read(step):
        return note_result(f"The node {node} was not deleted.", "warn")
    await step.answer(DeleteNode(step.actor, step.service, node), EmptyResult)
    return note_result(f"Deleted the node {node}.")


COMMANDS = (
    project_command("show-node", "Show a node", Audience.OWNERS, ask_node, _show),
    project_command("create-node", "Create a node", Audience.CREATORS, _ask_new, _create, form_type=NODE_CONFIG),
    project_command(
        "configure-node",
        "Configure a node",
        Audience.OWNERS,
        ask_node,
        _show_configuration,
        _configure,
        form_type=NODE_CONFIG,
    ),
    project_command("purge-node", "Retract all items of a node", Audience.OWNERS, ask_node, _ask_purge, _purge),
    project_command("delete-node", "Delete a node", Audience.OWNERS, ask_node, _ask_deletion, _delete),
)
