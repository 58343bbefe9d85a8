"""The first step of commands about one node: a field for its name, with the nodes of the user to choose from."""

from dataclasses import replace

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.administration import ListManagedNodes, ManagedNodes
from smartfeeds.xmpp.command_fields import text_field
from smartfeeds.xmpp.command_lists import cell
from smartfeeds.xmpp.commands import CommandForm, StepInput
from smartfeeds.xmpp.forms import FormField

NODE = text_field("node", "Node", MAX_ID_BYTES, any_character=True)
# A longer list of choices is slow to use in a client, and with long names it could exceed the size of a stanza.
_CHOICES = 100
_CHOICES_BYTES = 16_384


async def ask_node(step: StepInput) -> CommandForm:
    """A form with the field for the node."""
    return CommandForm((await node_field(step),))


async def node_field(step: StepInput) -> FormField:
    """Returns the field for a node. It is a list if the user has few nodes, else a text."""
    answer = await step.answer(
        ListManagedNodes(step.actor, step.service, ResultSetRequest(str(_CHOICES))), ManagedNodes
    )
    names = [entry.node.name for entry in answer.entries]
    field = NODE.again(step)
    is_long = answer.result_set is not None and answer.result_set.is_longer_than(len(names))
    if not names or is_long or sum(len(name.encode()) for name in names) > _CHOICES_BYTES:
        return replace(field, description="The name of the node. The command List nodes shows your nodes.")
    choices = tuple(
        (entry.node.name, cell(f"{entry.node.name}: {title}" if (title := entry.node.options.title) else ""))
        for entry in answer.entries
    )
    return replace(field, type="list-single", values=field.values or (names[0],), choices=choices)
