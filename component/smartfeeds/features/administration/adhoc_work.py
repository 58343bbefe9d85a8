"""The ad-hoc command for work that goes on after the answer to a command (OPS-070)."""

from smartfeeds.core.times import format_second
from smartfeeds.features.administration.work import ListWork, Work, WorkList
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_lists import ListPage, list_steps
from smartfeeds.xmpp.commands import Pages, StepInput, project_command

_COLUMNS = (
    ("number", "Number"),
    ("work", "Work"),
    ("subject", "Node or person"),
    ("state", "State"),
    ("rest", "Items left"),
    ("since", "Since"),
)


async def _page(step: StepInput) -> ListPage:
    """One page: purges and removals end within minutes, and erasures are rare."""
    answer = await step.answer(ListWork(step.actor, step.service), WorkList)
    return ListPage([_row(work) for work in answer.entries], Pages(step.page))


def _row(work: Work) -> tuple[str, ...]:
    rest = "" if work.rest is None else str(work.rest)
    since = "" if work.since_us is None else format_second(work.since_us)
    return work.number, work.kind.value, work.subject, work.state, rest, since


COMMANDS = (
    project_command(
        "list-work", "List work in progress", Audience.OWNERS, *list_steps(_COLUMNS, "piece of work", _page)
    ),
)
