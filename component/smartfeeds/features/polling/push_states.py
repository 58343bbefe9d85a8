"""Subscriptions of sources at hubs and clouds, as values (WebSub sections 5 and 7; RSS-024 to RSS-030), with the random
texts that make their paths and secrets (WS-101, WS-103; RC-062).

Each function takes a subscription and what has happened, and returns the next subscription. All functions are pure.
Times are microseconds since the Unix epoch; `chance` is a random number in 0..1.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.urls import PUSH
from smartfeeds.features.callbacks.signatures import METHODS, sign
from smartfeeds.features.polling.push_links import PushOffer, PushTarget
from smartfeeds.features.polling.source import PushKind
from smartfeeds.json_form import JsonForm

# Makes a random text of letters, digits, - and _ from so many random bytes.
NewKey = Callable[[int], str]

TOKEN_BYTES: Final = 16  # 128 bits
SECRET_BYTES: Final = 32  # 43 letters; a hub takes less than 200 bytes (WebSub section 5.1)
HOUR_S: Final = 3_600
DAY_S: Final = 86_400
DAY_US: Final = DAY_S * US_PER_S
HOUR_US: Final = HOUR_S * US_PER_S
CHECK_US: Final = 6 * HOUR_US  # that a hub has for its check (WS-104)
GRACE_US: Final = 6 * HOUR_US  # for which a lease that is over is still renewed (WS-116)
LEASE_WISH_S: Final = 864_000  # ten days (WS-100)
# The check of the hub decides within this limit. Hubs of PubSubHubbub 0.3 name no lease (WS-112).
LONGEST_LEASE_S: Final = 14 * DAY_S
UNSTATED_LEASE_S: Final = DAY_S
# A registration at a cloud ends after 25 hours (RSS-026). It is renewed an hour to an hour and a half before (RC-067).
CLOUD_LEASE_S: Final = 90_000
CLOUD_RENEWAL_S: Final = 86_400
CLOUD_EARLIER_S: Final = 1_800
MISSES: Final = 3  # in a row: the hub is not trusted any more (WS-134)
FORGERIES: Final = 10  # in a row: a new path and secret (WS-124)
LATE_US: Final = 15 * 60 * US_PER_S  # a change that a poll finds should have been pushed by then (WS-134)
AGAIN_US: Final = 60 * US_PER_S  # before a poll that follows one without news (RC-075)
# The path of a subscription that has ended answers 410 for so long.
KEPT_US: Final = 30 * DAY_US
REASON_CHARACTERS: Final = 300
MAX_CURSOR_CHARACTERS: Final = 1_024
MAX_PUSH_BYTES: Final = 10_000_000  # as it is received, and without its coding
_TRIES_OF_HINT: Final = 2  # polls that a hint causes, see `after_poll`
_NEXT_TARGET_US: Final = 60 * US_PER_S  # before the next hub of the offer is tried


@dataclass(frozen=True, slots=True)
class OwnCallbacks:
    """The callbacks of this service for hubs and clouds. `own_url` is its public address. `new_key` is None if they
    cannot, or if push is off. With `secret_over_http` hubs without TLS get a secret, too."""

    own_url: str = ""
    new_key: NewKey | None = None
    secret_over_http: bool = False


def callback_url(own_url: str, token: str) -> str:
    """The address at which a hub or cloud reaches a subscription."""
    return f"{own_url}{PUSH}{token}"


class PushState(Enum):
    """The state of a subscription at a hub or cloud (WS-141)."""

    PLANNED = "planned"
    """It will be requested at `due_us`."""
    ASKED = "asked"
    """The hub was asked, and its check is awaited."""
    ACTIVE = "active"
    """Pushes are taken."""
    REFUSED = "refused"
    """The request failed, was refused or denied; it is repeated at `due_us`."""
    LEAVING = "leaving"
    """It is not wanted any more, and the hub may confirm that."""
    ENDED = "ended"
    """Its path answers that it is gone, until it is removed at `due_us`."""


# The states in which a subscription belongs to its source.
FOLLOWING: Final = frozenset({PushState.PLANNED, PushState.ASKED, PushState.ACTIVE, PushState.REFUSED})
OVER: Final = frozenset({PushState.LEAVING, PushState.ENDED})


@dataclass(frozen=True, slots=True)
class PollHint:
    """A notification without content that asks for a poll: when it came, and how many polls have brought nothing."""

    at_us: int
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SourcePush:
    """A subscription of a source. `token` is the last segment of its callback path, `secret` what pushes are signed by.

    `others` are the targets of the offer that are tried after this one fails. `door` is the address after permanent
    redirects, "" for that of the target. `asked_us` is the time of a request whose check has not come, `ends_us` the
    end of the lease, `active_us` when it first became active, `pushed_us` when the last push came; None is never.
    `failures` counts failed requests in a row, `misses` changes that only polls found, `absences` polls whose document
    did not name the target, `forgeries` pushes in a row without a right signature. `pending_us` is the time of the last
    push that has not been stored yet. `has_secret`: the hub has confirmed a request with
    the secret; `asks_secret`: the last request had it. `notify` is the protocol in which a cloud notifies, "" while
    none was accepted. `cursor` is the last one that a push of another Smart Feeds service named. `mirror` is the name
    of the mirror that it belongs to, "" for a subscription of a source.
    """

    push_no: int
    source_no: int
    token: str = field(repr=False)
    target: PushTarget
    state: PushState
    due_us: int | None
    created_us: int
    since_us: int
    reason: str = ""
    door: str = ""
    others: tuple[PushTarget, ...] = ()
    secret: str = field(default="", repr=False)
    asked_us: int | None = None
    ends_us: int | None = None
    active_us: int | None = None
    pushed_us: int | None = None
    failures: int = 0
    misses: int = 0
    absences: int = 0
    forgeries: int = 0
    pending_us: int | None = None
    hint: PollHint | None = None
    has_secret: bool = False
    asks_secret: bool = False
    notify: str = ""
    cursor: str = field(default="", repr=False)
    mirror: str = ""

    @property
    def kind(self) -> PushKind:
        """Whether the target is a hub or a cloud."""
        return self.target.kind

    @property
    def expects_signature(self) -> bool:
        """Whether pushes must be signed. While a lease runs, a request to renew it changes nothing (WS-115)."""
        return self.has_secret if self.state is PushState.ACTIVE else self.has_secret or self.asks_secret

    @property
    def address(self) -> str:
        """The address that takes requests."""
        return self.door or self.target.url

    @property
    def host(self) -> str:
        """The host and port of the address; requests to it are spaced (WS-137)."""
        return urlsplit(self.address).netloc.lower()


# The fields that are columns of the table, in the order of its statements. The others are stored as JSON.
PUSH_COLUMNS: Final = ("push_no", "source_no", "token", "state", "due_us", "created_us", "since_us", "reason")
PUSH_DETAILS: Final = JsonForm(SourcePush, columns={*PUSH_COLUMNS}, sparse=True)


class Task(Enum):
    """The next request for a subscription that is due."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    REMOVE = "remove"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The result of a request. `is_refusal`: the target has answered no, so that repeating the request soon is
    pointless. `door` is the address after permanent redirects, `notify` the protocol that notifications were asked in.
    """

    succeeded: bool
    reason: str = ""
    is_refusal: bool = False
    retry_after_s: float | None = None
    door: str = ""
    notify: str = ""


def mirror_source_no(mirror: str) -> int:
    """The number that a mirror has in the place of that of a source. Sources have positive numbers."""
    return -1 - int.from_bytes(hashlib.blake2b(mirror.encode(), digest_size=7).digest())


def new_push(source_no: int, offer: PushOffer, token: str, secret: str, now_us: int, mirror: str = "") -> SourcePush:
    """A subscription at the first target of an offer, which is requested now."""
    target, *others = offer.targets
    return SourcePush(
        *(0, source_no, token, target, PushState.PLANNED, now_us, now_us, now_us),
        others=tuple(others),
        secret=secret,
        mirror=mirror,
    )


def at_due(push: SourcePush, now_us: int) -> tuple[SourcePush, Task]:
    """Returns the subscription after its due time, and the request that is then due."""
    if push.state is PushState.ENDED:
        return push, Task.REMOVE
    if push.state is PushState.LEAVING:
        has_lease = push.ends_us is not None and push.ends_us > now_us
        if push.asked_us is None and has_lease and push.kind is PushKind.HUB:
            return replace(push, asked_us=now_us, due_us=push.ends_us), Task.UNSUBSCRIBE
        return ended(push, now_us), Task.NOTHING
    if push.state is PushState.ASKED:
        return _failed(push, "the hub has not checked the request", now_us, None), Task.NOTHING
    if push.state is PushState.ACTIVE:
        assert push.ends_us is not None  # `confirmed` sets both
        if push.ends_us + GRACE_US <= now_us:
            return _refused(push, "the lease ended and was not renewed", now_us), Task.NOTHING
        return replace(push, asked_us=now_us, due_us=_within_lease(push, now_us + CHECK_US)), Task.SUBSCRIBE
    return _in_state(
        replace(push, asked_us=now_us, due_us=now_us + CHECK_US), PushState.ASKED, push.reason, now_us
    ), Task.SUBSCRIBE


def after_request(
    push: SourcePush, asked_us: int | None, result: RequestResult, now_us: int, chance: float
) -> SourcePush:
    """The subscription after the answer to the request that was sent at `asked_us`."""
    if push.asked_us != asked_us or push.state in OVER:
        return push  # its check came before the answer, or it was changed meanwhile; an unsubscription is not repeated
    push = replace(push, door=result.door if result.door != push.target.url else "")
    if result.succeeded and push.kind is PushKind.CLOUD:
        return confirmed(replace(push, notify=result.notify), CLOUD_LEASE_S, now_us, chance)
    if result.succeeded:
        return push
    push = replace(push, asked_us=None)
    if not result.is_refusal or push.kind is PushKind.CLOUD:
        return _failed(push, result.reason, now_us, result.retry_after_s)
    if push.state is PushState.ACTIVE:  # it stays until its lease ends (WS-115)
        return _failed(push, result.reason, now_us, DAY_S)
    return _refused(push, result.reason, now_us)


def confirmed(push: SourcePush, lease_s: int | None, now_us: int, chance: float) -> SourcePush:
    """The subscription is active for the lease of the check (WS-112, WS-115)."""
    lease_s = UNSTATED_LEASE_S if lease_s is None else min(lease_s, LONGEST_LEASE_S)
    if push.kind is PushKind.CLOUD:
        renewal_s = CLOUD_RENEWAL_S - chance * CLOUD_EARLIER_S
    else:
        # At 70 to 80 % of the lease, at the latest an hour before its end. A lease below two hours is renewed at half.
        renewal_s = min(lease_s * (0.8 - 0.1 * chance), max(lease_s - HOUR_S, lease_s / 2))
    active_us = now_us if push.active_us is None or push.state is not PushState.ACTIVE else push.active_us
    push = replace(push, asked_us=None, failures=0, active_us=active_us, ends_us=now_us + lease_s * US_PER_S)
    push = replace(push, has_secret=push.asks_secret)
    return replace(_in_state(push, PushState.ACTIVE, "", now_us), due_us=now_us + max(1, int(renewal_s * US_PER_S)))


def denied(push: SourcePush, reason: str, now_us: int) -> SourcePush:
    """The hub has ended the subscription, or will not begin it (WS-117)."""
    if push.state in OVER:
        return ended(push, now_us)
    return _refused(push, f"the hub denied it: {reason}" if reason else "the hub denied it", now_us)


def left(push: SourcePush, reason: str, now_us: int) -> SourcePush:
    """The subscription is not wanted any more; its path stays until the hub has confirmed that (WS-136)."""
    if push.state in OVER:
        return push
    push = replace(push, asked_us=None, due_us=now_us, hint=None)
    return _in_state(push, PushState.LEAVING, reason, now_us)


def ended(push: SourcePush, now_us: int) -> SourcePush:
    """The subscription is over; its path answers 410."""
    push = replace(push, asked_us=None, due_us=now_us + KEPT_US, secret="", hint=None, pending_us=None)
    return _in_state(push, PushState.ENDED, push.reason, now_us)


def renewed(push: SourcePush, now_us: int) -> SourcePush:
    """The subscription, requested now because a person wants it."""
    state = push.state if push.state is PushState.ACTIVE else PushState.PLANNED
    return _in_state(replace(push, due_us=now_us, asked_us=None, failures=0), state, "", now_us)


def awaits_check(push: SourcePush, mode: str) -> bool:
    """Whether a hub may check a request of this mode (WS-108, WS-113)."""
    if push.kind is not PushKind.HUB:
        return False
    if mode == "unsubscribe":
        return push.state is PushState.LEAVING and push.asked_us is not None
    return mode == "subscribe" and push.state in (PushState.ASKED, PushState.ACTIVE)


def is_signed(signature: str, secret: str, body: bytes) -> bool:
    """Whether a value of X-Hub-Signature is right for the bytes of a body, in constant time (WebSub section 7.1.2)."""
    method, _, digits = signature.strip().partition("=")
    if method not in METHODS:
        return False
    # Digests are compared as bytes: compare_digest takes text in ASCII only.
    return hmac.compare_digest(sign(method, secret, body).partition("=")[2].encode(), digits.lower().encode())


def forged(push: SourcePush) -> SourcePush:
    """A push without a right signature came."""
    return replace(push, forgeries=push.forgeries + 1)


def pushed(push: SourcePush, now_us: int) -> SourcePush:
    """A push or a notification came that is taken."""
    return replace(push, pushed_us=now_us, misses=0, forgeries=0)


def hinted(push: SourcePush, now_us: int) -> SourcePush:
    """A notification without content came, or content that nobody has signed: it asks for a poll."""
    return replace(push, hint=PollHint(now_us))


def after_poll(push: SourcePush, began_us: int, *, has_news: bool) -> tuple[SourcePush, bool]:
    """The subscription after a poll that began at a time, and whether another one is to follow in a minute.

    A notification that came meanwhile makes one more poll (RC-073). After a poll that brings nothing new there is one
    more, because the publisher may have answered from a cache (RC-075).
    """
    hint = push.hint
    if hint is None:
        return push, False
    if hint.at_us > began_us:
        return push, True
    hint = replace(hint, tries=hint.tries + 1)
    if has_news or hint.tries >= _TRIES_OF_HINT:
        return replace(push, hint=None), False
    return replace(push, hint=hint), True


def is_late(push: SourcePush, time_us: int | None, now_us: int) -> bool:
    """Whether a change of this time, which a poll has found, should have been pushed (WS-134, RC-077)."""
    since_us = push.active_us
    return (
        push.state is PushState.ACTIVE
        and since_us is not None
        and time_us is not None
        and since_us <= time_us <= now_us - LATE_US
    )


def offered(push: SourcePush, offer: PushOffer) -> SourcePush:
    """The subscription after a poll whose document makes this offer (WS-135)."""
    if not offer.names(push.target):
        return replace(push, absences=push.absences + 1)
    others = tuple(target for target in offer.targets if target != push.target)
    # The order of the others stays while they are tried in turn.
    return replace(push, absences=0, others=push.others if set(push.others) == set(others) else others)


def _refused(push: SourcePush, reason: str, now_us: int) -> SourcePush:
    return _at_next_target(push, reason, now_us, DAY_US)


def _failed(push: SourcePush, reason: str, now_us: int, pause_s: float | None) -> SourcePush:
    """A request failed: the next one after the pause that was asked for, or after an hour, doubling up to a day."""
    if pause_s is None:
        pause_s = Backoff(HOUR_S, DAY_S).pause_s(push.failures + 1, 1.0)
    pause_us = int(min(pause_s, DAY_S) * US_PER_S)
    if push.state is PushState.ACTIVE:
        push = replace(push, asked_us=None, failures=push.failures + 1, due_us=_within_lease(push, now_us + pause_us))
        return _in_state(push, PushState.ACTIVE, reason, now_us)
    return _at_next_target(push, reason, now_us, pause_us)


def _at_next_target(push: SourcePush, reason: str, now_us: int, pause_us: int) -> SourcePush:
    """The subscription after a refusal. The next target of the offer is tried soon, the first one again after a pause
    (WS-099, RC-055)."""
    failures = push.failures + 1
    is_first_round = failures <= len(push.others)
    push = replace(
        push,
        asked_us=None,
        ends_us=None,
        failures=failures,
        due_us=now_us + (_NEXT_TARGET_US if is_first_round else pause_us),
    )
    if push.others:
        push = replace(push, target=push.others[0], others=(*push.others[1:], push.target), door="", cursor="")
    return _in_state(push, PushState.REFUSED, reason, now_us)


def _within_lease(push: SourcePush, due_us: int) -> int:
    """The time of the next attempt to renew, no later than the end of all attempts."""
    assert push.ends_us is not None
    return min(due_us, push.ends_us + GRACE_US)


def _in_state(push: SourcePush, state: PushState, reason: str, now_us: int) -> SourcePush:
    reason = reason[:REASON_CHARACTERS]
    since_us = push.since_us if (state, reason) == (push.state, push.reason) else now_us
    return replace(push, state=state, reason=reason, since_us=since_us)
