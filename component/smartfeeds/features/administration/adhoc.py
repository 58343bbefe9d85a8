"""The ad-hoc commands of administration, and here that which retries consumers (`smartfeeds consumer retry`)."""

from smartfeeds.core.text import counted
from smartfeeds.features.administration import adhoc_nodes, adhoc_people, adhoc_process, adhoc_users
from smartfeeds.service.consumer_requests import ConsumersRetried, RetryConsumers
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, text_field
from smartfeeds.xmpp.commands import CommandResult, StepInput, note_result, project_command
from smartfeeds.xmpp.side import XmppSide

_MAX_NAME_BYTES = 4_096
_NAME = text_field(
    "consumer",
    "Consumer",
    _MAX_NAME_BYTES,
    required=False,
    any_character=True,
    description="The name from the list of consumers. Empty: all consumers that failed.",
)


async def _retry(step: StepInput) -> CommandResult:
    name = _NAME.read(step)
    answer = await step.answer(RetryConsumers(step.actor, step.service, name or None), ConsumersRetried)
    return note_result(f"{counted(answer.count, 'consumer')} will be retried.")


XMPP = XmppSide(
    commands=(
        *adhoc_nodes.COMMANDS,
        *adhoc_people.COMMANDS,
        project_command(
            "retry-consumers",
            "Retry consumers that failed",
            Audience.ADMINS,
            form_step(_NAME, instructions="The service retries now, also after it had given up."),
            _retry,
        ),
        *adhoc_process.COMMANDS,
        *adhoc_users.COMMANDS,
    )
)
