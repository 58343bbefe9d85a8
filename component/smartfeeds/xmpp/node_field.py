"""The first step of commands about one node: a field for its name, with the nodes of the user to choose from."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.managed_nodes import ListManagedNodes
from smartfeeds.service.resources import ListAnswer
from smartfeeds.xmpp.command_fields import text_field
from smartfeeds.xmpp.command_lists import cell, is_whole
from smartfeeds.xmpp.commands import CommandForm, StepInput
from smartfeeds.xmpp.forms import FormField

NODE = text_field(
    "node",
    "Node",
    MAX_ID_BYTES,
    any_character=True,
    description="The name of the node. The command List nodes shows your nodes.",
)
# A longer list of choices is slow to use in a client, and with long names it could exceed the size of a stanza.
_CHOICES = 100
_CHOICES_BYTES = 16_384


async def ask_node(step: StepInput) -> CommandForm:
    """A form with the field for the node."""
    return CommandForm((await node_field(step),))


async def node_field(step: StepInput) -> FormField:
    """Returns the field for a node. It is a list if the user has few nodes, else a text."""
    answer = await step.answer(ListManagedNodes(step.actor, step.service, ResultSetRequest(str(_CHOICES))), ListAnswer)
    choices = tuple(
        (entry.node.name, cell(f"{entry.node.name}: {title}" if (title := entry.node.options.title) else ""))
        for entry in answer.entries
    )
    fits = sum(len(name.encode()) for name, _ in choices) <= _CHOICES_BYTES
    return NODE.offer(step, choices, complete=fits and is_whole(answer.result_set, len(choices)))
