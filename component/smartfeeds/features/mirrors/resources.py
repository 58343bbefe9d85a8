"""The lists of mirrors: each mirror with its state, and each of its directions for pages."""

from collections.abc import Callable
from typing import NamedTuple

from smartfeeds.core.consumers import ERROR_CHARACTERS
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S, format_second
from smartfeeds.features.mirrors.mirror import Direction, Mirror
from smartfeeds.features.mirrors.requests import ListMirrors, MirrorNamed, RemoveMirror, RestartMirror
from smartfeeds.features.mirrors.statuses import MirrorStanding, MirrorStatus, describe_standing
from smartfeeds.service.requests import Request
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    Brief,
    Caller,
    Choice,
    Column,
    Fields,
    ListAnswer,
    ListCommand,
    ReadPage,
    Resource,
    Row,
    TablePage,
    reader,
)
from smartfeeds.service.standing import Audience
from smartfeeds.texts import N_

MAX_NAME_BYTES = 40
SETTINGS = ("name", "node", "direction", "address", "from")  # the columns that a mirror has without its state


class MirrorWay(NamedTuple):
    """A direction of a mirror."""

    mirror: Mirror
    standing: MirrorStanding


_read: ReadPage[MirrorStatus] = reader(ListMirrors)


async def _read_ways(caller: Caller, page: ResultSetRequest, narrow: bool) -> ListAnswer[MirrorWay]:
    mirrors = await _read(caller, page, narrow)
    ways = [MirrorWay(status.mirror, standing) for status in mirrors.entries for standing in status.standings]
    return ListAnswer(ways, mirrors.result_set)


def _standing_row(standing: MirrorStanding) -> Row:
    state = standing.state
    return {
        "direction": standing.direction.value,
        "in_step": standing.in_step,
        "lag_s": None if standing.behind_us is None else standing.behind_us / US_PER_S,
        "in_step_at": _second(state.in_step_us),
        "failing_since": None if state.failure is None else _second(state.failure.since_us),
        "failure": state.error,
        "note": state.note,
        "means": state.means,
        "changes": state.items,
        "waiting": standing.waiting,
        "conflicts_met": state.conflicts,
        "refused": state.refused,
        "refusals": [
            {"id": refusal.item_id, "reason": refusal.reason, "at": _second(refusal.at_us)} for refusal in state.reasons
        ],
    }


def _second(time_us: int | None) -> str | None:
    return None if time_us is None else format_second(time_us)


def _state(status: MirrorStatus) -> str:
    states = [f"{standing.direction.value}: {describe_standing(standing)}" for standing in status.standings]
    if status.conflicted:
        states.append(f"{counted(status.conflicted, 'item')} with conflicts")
    return "; ".join(states)


def _errors(status: MirrorStatus) -> str:
    errors = (standing.state.error for standing in status.standings)
    return "; ".join(error for error in errors if error)[:ERROR_CHARACTERS]


def _action(name: str, title: str, request: Callable[[Caller, str], Request], done: str) -> Action:
    async def perform(caller: Caller, fields: Fields) -> ActionResult:
        answer = await caller.ask(request(caller, fields["mirror"]), MirrorNamed)
        return ActionResult(done.format(name=answer.name, node=answer.node))

    return Action(name, perform, title, Audience.ADMINS)


MIRRORS: Resource[MirrorStatus] = Resource(
    "mirrors",
    "mirror",
    (
        Column("name", lambda status: status.mirror.name, "Name"),
        Column("node", lambda status: status.mirror.node, "Node"),
        Column("direction", lambda status: status.mirror.direction.value, "Direction"),
        Column("address", lambda status: status.mirror.address, "Address"),
        Column(
            "from",
            lambda status: "configuration" if status.configured else "mirror add",
            "From",
            text=lambda status: "configuration" if status.configured else "command",
            var="origin",
        ),
        Column("node_exists", lambda status: status.node_there),
        Column("items_with_conflicts", lambda status: status.conflicted),
        Column("directions", lambda status: [_standing_row(standing) for standing in status.standings]),
        Column("state", None, "State", text=_state),
        Column("error", None, "Last error", text=_errors),
    ),
    empty="There are no mirrors.",
    brief=Brief(("name", "node", "direction", "address"), cut=("address",)),
    read=_read,
    command=ListCommand(
        "list-mirrors",
        "List mirrors and their state",
        (*SETTINGS, "state", "error"),
    ),
    summary="The mirrors of your nodes with their state; all mirrors for admins",
    choice=Choice(
        "mirror",
        "Mirror",
        MAX_NAME_BYTES,
        lambda status: (status.mirror.name, f"{status.mirror.name}: {status.mirror.node}"),
    ),
    actions=(
        _action(
            "remove",
            "Remove a mirror",
            lambda caller, name: RemoveMirror(caller.actor, caller.service, name),
            "Removed the mirror {name}; the node {node} remains.",
        ),
        _action(
            "restart",
            "Start a mirror again from the beginning",
            lambda caller, name: RestartMirror(caller.actor, caller.service, name),
            "The mirror {name} reads and sends everything again.",
        ),
    ),
)
MIRROR_WAYS: Resource[MirrorWay] = Resource(
    "mirrors",
    "direction",
    (
        Column("node", lambda way: way.mirror.node, N_("Feed")),
        Column(
            "direction",
            lambda way: way.standing.direction.value,
            N_("Direction"),
            "word",
            words=tuple(way.value for way in Direction.BOTH.ways),
        ),
        Column("address", lambda way: way.mirror.address, N_("Address")),
        Column("step", lambda way: N_("in step") if way.standing.in_step else N_("behind"), N_("State"), "word"),
        Column("changes", lambda way: way.standing.state.items, N_("Changes"), "number"),
        Column("waiting", lambda way: way.standing.waiting, N_("Waiting"), "number"),
        Column("refused", lambda way: way.standing.state.refused, N_("Refused"), "number"),
        Column("failure", lambda way: way.standing.state.error, N_("Last error")),
    ),
    read=_read_ways,
    table=TablePage(
        N_("Mirrors"),
        N_("Feeds that are kept in step with a feed elsewhere, each direction in a row."),
        N_("There are no mirrors."),
        ("node", "direction", "address", "step", "changes", "waiting", "refused", "failure"),
    ),
)
