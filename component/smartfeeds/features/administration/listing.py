"""Nodes, tokens, consumers, mirrors, sources and enclosures as rows of administration: objects to be written as JSON.

`--json` of the commands, the responses over HTTP and the pages of the web administration show the same members. Times
are date-times in whole seconds.
"""

from typing import Any

from smartfeeds.core.consumers import Failure
from smartfeeds.core.times import US_PER_S, format_second
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.cloud.requests import CloudStatus
from smartfeeds.features.hub.requests import HubStatus
from smartfeeds.features.mirrors.mirror import MirrorState
from smartfeeds.features.mirrors.mirror_rows import MirrorStanding, MirrorStatus
from smartfeeds.features.polling.push_states import SourcePush
from smartfeeds.features.polling.source import Source
from smartfeeds.features.prefetch.enclosure import Arrival, EnclosureState
from smartfeeds.features.prefetch.enclosures import EnclosureStatus
from smartfeeds.service.consumer_requests import next_attempt
from smartfeeds.service.managed_nodes import NodeSummary

Row = dict[str, Any]


def node_row(summary: NodeSummary) -> Row:
    """A node with its counts."""
    node = summary.node
    return {
        "node": node.name,
        "kind": node.kind.value,
        "items": summary.items,
        "deleted": summary.deleted,
        "subscriptions": summary.subscriptions,
        "created": format_second(node.created_us),
        "creator": node.creator,
    }


def subscription_row(status: HubStatus) -> Row:
    """A subscription of the hub. It has neither the secret nor the address of the callback, only its host."""
    callback, failure = status.callback, status.failure
    return {
        "subscription": callback.callback_no,
        "node": status.node,
        "topic": callback.topic,
        "host": callback.host,
        "reader": callback.reader,
        "state": status.phase.value,
        "dialect": status.dialect,
        "lease_end": format_second(callback.expires_us),
        "waiting": status.waiting,
        "lag_s": status.lag_us // US_PER_S,
        **_last_delivery(callback, failure),
    }


def registration_row(status: CloudStatus) -> Row:
    """A registration of the cloud. It has not the address of the callback, only its host."""
    callback = status.callback
    return {
        "registration": callback.callback_no,
        "node": status.node,
        "url": status.url,
        "host": callback.host,
        "protocol": status.protocol.value,
        "state": status.phase.value,
        "expires": format_second(callback.expires_us),
        **_last_delivery(callback, status.failure),
    }


def _last_delivery(callback: Callback, failure: Failure | None) -> Row:
    return {
        "last_try": "" if callback.tried_us is None else format_second(callback.tried_us),
        "last_result": callback.result,
        "failures": failure.count if failure else 0,
        "next_attempt": next_attempt(failure.next_us) if failure else "",
    }


def mirror_row(status: MirrorStatus) -> Row:
    """The settings of a mirror."""
    mirror = status.mirror
    return {
        "name": mirror.name,
        "node": mirror.node,
        "direction": mirror.direction.value,
        "address": mirror.address,
        "from": "configuration" if status.configured else "mirror add",
    }


def mirror_state_row(status: MirrorStatus) -> Row:
    """A mirror with the state of its directions."""
    return {
        **mirror_row(status),
        "node_exists": status.node_there,
        "items_with_conflicts": status.conflicted,
        "directions": [_standing_row(standing) for standing in status.standings],
    }


def _standing_row(standing: MirrorStanding) -> Row:
    state: MirrorState = standing.state
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


def source_row(source: Source, push: SourcePush | None = None) -> Row:
    """A source with its state (SRC-047) and that of its subscription (WS-141). Secrets are left out."""
    return {
        "number": source.source_no,
        "node": source.node,
        "address": source.url,
        "state": source.state_word,
        "reason": source.reason,
        "since": format_second(source.since_us),
        "last_good": _second(source.good_us) or "",
        "next": _second(source.due_us) or "",
        "from": _origin(source),
        "push": "" if push is None else f"{push.kind.value} {push.state.value}",
        "push_reason": "" if push is None else push.reason,
        "push_until": "" if push is None else _second(push.ends_us) or "",
        "last_push": "" if push is None else _second(push.pushed_us) or "",
        "missed": 0 if push is None else push.misses,
    }


def _origin(source: Source) -> str:
    """Where a source comes from: the configuration, a list, a user or a command."""
    if source.configured:
        return "configuration"
    if source.settings.list_no:
        return f"list {source.settings.list_no}"
    return source.owner or ("source follow" if source.settings.is_list else "source add")


def enclosure_row(status: EnclosureStatus, part_bytes: int) -> Row:
    """An enclosure with its progress (PRE-036). `part_bytes` is the size of its partial file now."""
    enclosure = status.enclosure
    has_arrived = enclosure.state is EnclosureState.ARRIVED
    size_bytes = (enclosure.length_bytes or 0) if has_arrived else part_bytes
    total_bytes = enclosure.length_bytes if has_arrived else enclosure.total_bytes or enclosure.length_bytes
    return {
        "node": status.node,
        "item": status.item_id,
        "state": enclosure.state.value,
        "bytes": size_bytes,
        "of_bytes": total_bytes or 0,
        "percent": min(100, 100 * size_bytes // total_bytes) if total_bytes else 0,
        "reason": enclosure.reason,
        "failures": enclosure.failures,
        "since": format_second(enclosure.since_us),
        "address": enclosure.url,
    }


def arrival_row(arrival: Arrival) -> Row:
    """An entry of the log of loads (PRE-031)."""
    return {
        "at": format_second(arrival.at_us),
        "node": arrival.node,
        "item": arrival.item_id,
        "bytes": arrival.size_bytes,
        "seconds": round(arrival.seconds, 1),
        "reason": arrival.reason or "arrived",
        "address": arrival.url,
    }


def _second(time_us: int | None) -> str | None:
    return None if time_us is None else format_second(time_us)
