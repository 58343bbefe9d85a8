"""Ad-hoc commands for consumers: list them with lag and last error, retry those that failed (`smartfeeds consumer`).

Consumers are read forward only, so the first page is the previous page of every other.
"""

import re

from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.service.consumer_requests import ConsumerList, ConsumersRetried, ListConsumers, RetryConsumers
from smartfeeds.service.consumers import FIRST, ConsumerStatus
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import flag_field, form_step, text_field
from smartfeeds.xmpp.command_lists import PAGE_ROWS, ListPage, list_steps
from smartfeeds.xmpp.commands import CommandResult, Pages, StepInput, note_result, project_command
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

_MAX_NAME_BYTES = 4_096
_POSITION = re.compile(r"([0-9]{1,18}):([a-z]*):(.*)", re.ASCII | re.DOTALL)
_FIRST_PAGE = "0::"

_BEHIND = flag_field(
    "behind", "Only consumers that are not current", default=True, description="Each node has one for notifications."
)
_NAME = text_field(
    "consumer",
    "Consumer",
    _MAX_NAME_BYTES,
    required=False,
    any_character=True,
    description="The name from the list of consumers. Empty: all consumers that failed.",
)
_COLUMNS = (
    ("consumer", "Consumer"),
    ("node", "Node"),
    ("order", "Order"),
    ("state", "State"),
    ("waiting", "Waiting"),
    ("lag", "Lag in seconds"),
    ("next", "Next attempt"),
    ("error", "Last error"),
)


async def _page(step: StepInput) -> ListPage:
    behind = _BEHIND.read(step)
    request = ListConsumers(step.actor, step.service, behind, _position(step.page), PAGE_ROWS)
    answer = await step.answer(request, ConsumerList)
    # A page without late consumers may be followed by one with some.
    following = "" if answer.after is None else ":".join(map(str, answer.after))
    pages = Pages(step.page, _FIRST_PAGE if step.page not in ("", _FIRST_PAGE) else "", following)
    hidden = (_BEHIND.hide("true" if behind else "false"),)
    return ListPage([_row(status) for status in answer.statuses], pages, None, hidden)


def _position(text: str) -> tuple[int, str, str]:
    """Returns the key after which a page begins. Raises CommandError(BAD_PAYLOAD)."""
    if not text:
        return FIRST
    match = _POSITION.fullmatch(text)
    if match is None:
        raise CommandError(CommandFault.BAD_PAYLOAD, "the hidden field page is wrong; send all hidden fields back")
    return int(match[1]), match[2], match[3]


def _row(status: ConsumerStatus) -> tuple[str, ...]:
    failure = status.failure
    return (
        status.consumer.name,
        status.node,
        status.order.value,
        status.state.value,
        str(status.waiting),
        str(status.lag_us // US_PER_S),
        "" if status.next_us is None else format_datetime(status.next_us),
        "" if failure is None else failure.error,
    )


async def _retry(step: StepInput) -> CommandResult:
    name = _NAME.read(step)
    answer = await step.answer(RetryConsumers(step.actor, step.service, name or None), ConsumersRetried)
    return note_result(f"{counted(answer.count, 'consumer')} will be retried.")


COMMANDS = (
    project_command(
        "list-consumers",
        "List consumers with their lag",
        Audience.OWNERS,
        form_step(_BEHIND),
        *list_steps(_COLUMNS, "consumer", _page),
    ),
    project_command(
        "retry-consumers",
        "Retry consumers that failed",
        Audience.ADMINS,
        form_step(_NAME, instructions="The service retries now, also after it had given up."),
        _retry,
    ),
)
