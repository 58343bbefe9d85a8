"""The ad-hoc command that retries consumers that failed (`smartfeeds consumer retry`)."""

from smartfeeds.core.text import counted
from smartfeeds.service.consumer_requests import ConsumersRetried, RetryConsumers
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, text_field
from smartfeeds.xmpp.commands import CommandResult, StepInput, note_result, project_command

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


COMMANDS = (
    project_command(
        "retry-consumers",
        "Retry consumers that failed",
        Audience.ADMINS,
        form_step(_NAME, instructions="The service retries now, also after it had given up."),
        _retry,
    ),
)
