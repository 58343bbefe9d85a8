"""A simulated feed service with two followers and a subscriber, for tests of the checker.

Without a defect its histories are what a correct service under faults gives. Each defect breaks one promise, and
`broken` counts how often it did.
"""

import math
import random
from dataclasses import dataclass
from enum import StrEnum

from campaign.checker import Rule
from campaign.history import DELETED, Event, Kind, Shown, Status, digest_of

NODE = "news"
FOLLOWERS = ("f1", "f2")
SUBSCRIBER = "push:bob"
PAGE_ITEMS = 5


class Defect(StrEnum):
    """A way to break the promise."""

    ACKNOWLEDGES_BEFORE_COMMIT = "a crash loses writes that were acknowledged"
    SHOWS_REFUSED = "a refused write takes effect"
    STORES_TWICE = "a write is stored under a second id"
    KEYS_FROM_CLOCK = "keys are the time of a clock that steps back"
    READERS_DIFFER = "a reader gets another version at a key"
    COUNTS_WRONG = "the total is not the number of items"
    SKIPS_ITEM = "a page skips an item"
    EMPTY_PAGE_IS_END = "a follower takes an empty page for the end"
    PUSHES_TWICE = "every notification is sent twice, as by two processes"
    PUSHES_UNCHAINED = "a notification is lost inside the service"
    TWO_OWNERS = "a second process takes a shard that is owned"
    SUBSCRIBER_LEFT_BEHIND = "notifications end before the last change"


EXPECTED: dict[Defect, set[Rule]] = {
    Defect.ACKNOWLEDGES_BEFORE_COMMIT: {Rule.LOST},
    Defect.SHOWS_REFUSED: {Rule.REFUSED},
    Defect.STORES_TWICE: {Rule.TWICE},
    Defect.KEYS_FROM_CLOCK: {Rule.KEYS},
    Defect.READERS_DIFFER: {Rule.READERS},
    Defect.COUNTS_WRONG: {Rule.COUNTS},
    Defect.SKIPS_ITEM: {Rule.FOLLOWER},
    Defect.EMPTY_PAGE_IS_END: {Rule.FOLLOWER},
    Defect.PUSHES_TWICE: {Rule.CHAIN},
    Defect.PUSHES_UNCHAINED: {Rule.CHAIN},
    Defect.TWO_OWNERS: {Rule.OWNERS},
    Defect.SUBSCRIBER_LEFT_BEHIND: {Rule.LIVENESS},
}


@dataclass(slots=True)
class _Call:
    invocation: Event
    outcome: Status
    applied: bool = False
    key_us: int = 0


class SimulatedFeed:
    """`run` makes `events`. What is random comes from `chance`."""

    def __init__(self, chance: random.Random, defect: Defect | None = None) -> None:
        self.chance = chance
        self.defect = defect
        self.events: list[Event] = []
        self.broken = 0
        self._now_s = 0.0
        self._op = 0
        self._life = 1
        self._last_us = 1_000
        self._items: dict[str, tuple[str, int]] = {}  # id -> digest, key; in the order of creation
        self._log: list[tuple[int, str, str]] = []  # every version: key, id, digest
        self._before: dict[int, dict[str, tuple[str, int]]] = {}
        self._calls: list[_Call] = []
        self._positions = dict.fromkeys(FOLLOWERS, 0)
        self._mark_us = 0
        self._chain_us = 0

    def run(self, steps: int) -> list[Event]:
        """Writes, reads, sends and crashes; at the end everything is read."""
        for number in range(3):
            self._hold("a", f"shard{number}", Status.INVOKE)
        for step in range(steps):
            action = self.chance.choices(
                (self._begin, self._apply, self._complete, self._page, self._push, self._crash), (6, 6, 6, 4, 4, 1)
            )[0]
            action()
            if self.defect is Defect.TWO_OWNERS and step == steps // 2:
                self._hold("b", "shard1", Status.INVOKE)
                self.broken += 1
        self._finish()
        return self.events

    def _finish(self) -> None:
        while self._calls:
            self._apply()
            self._complete()
        self._begin(refused=False)
        self._apply()
        self._complete()
        for name in FOLLOWERS:
            while not self._page(name):
                pass
        if self.defect is Defect.SUBSCRIBER_LEFT_BEHIND:
            self.broken += bool(self._chain_us)
        else:
            while self._push():
                pass
        for created in (False, True):
            self._walk(created=created)

    def _note(self, process: str, kind: Kind, status: Status, **values: object) -> Event:
        self._now_s += self.chance.choice((0.0, 0.001, 0.5))
        event = Event(self._now_s, process, kind, status, **values)  # type: ignore[arg-type]
        self.events.append(event)
        return event

    def _hold(self, process: str, shard: str, status: Status) -> None:
        self._note(process, Kind.HOLD, status, node=shard)

    def _invoke(self, process: str, kind: Kind, item: str = "", digest: str = "") -> Event:
        self._op += 1
        return self._note(process, kind, Status.INVOKE, op=self._op, node=NODE, item=item, digest=digest)

    def _begin(self, *, refused: bool | None = None) -> None:
        item = f"i{self.chance.randrange(12)}"
        deletes = self.chance.random() < 0.2 and item in self._items
        kind, digest = (Kind.RETRACT, DELETED) if deletes else (Kind.PUBLISH, digest_of(item, str(self._op)))
        outcome = self.chance.choices((Status.OK, Status.FAIL, Status.UNKNOWN), (8, 1, 2))[0]
        if refused is not None:
            outcome = Status.OK
        if deletes:
            outcome = Status.OK
        self._calls.append(_Call(self._invoke(f"w{self._op}", kind, item, digest), outcome))

    def _apply(self) -> None:
        waiting = [call for call in self._calls if not call.applied]
        if not waiting:
            return
        call = self.chance.choice(waiting)
        call.applied = True
        if call.outcome is Status.FAIL:
            if self.defect is not Defect.SHOWS_REFUSED:
                return
            self.broken += 1
        if call.outcome is Status.UNKNOWN and self.chance.random() < 0.5:
            return
        item, digest = call.invocation.item, call.invocation.digest
        call.key_us = self._store(item, digest)
        if self.defect is Defect.STORES_TWICE and digest != DELETED and self.chance.random() < 0.3:
            self._store(f"{item}-copy", digest)
            self.broken += 1

    def _store(self, item: str, digest: str) -> int:
        self._before[len(self._log)] = dict(self._items)
        if self.defect is Defect.KEYS_FROM_CLOCK and self.chance.random() < 0.3:
            key_us = self.chance.randrange(1, self._last_us)
        else:
            key_us = self._last_us = self._last_us + self.chance.randint(1, 5)
        self._items[item] = (digest, key_us)
        self._log.append((key_us, item, digest))
        return key_us

    def _complete(self) -> None:
        ready = [call for call in self._calls if call.applied]
        if not ready:
            return
        call = self.chance.choice(ready)
        self._calls.remove(call)
        begun = call.invocation
        tells_key = call.outcome is Status.OK and begun.kind is Kind.PUBLISH
        self._note(
            begun.process,
            begun.kind,
            call.outcome,
            op=begun.op,
            node=NODE,
            item=begun.item,
            digest=begun.digest,
            key_us=call.key_us if tells_key else 0,
        )

    def _in_order(self) -> list[Shown]:
        return sorted((Shown(item, *version) for item, version in self._items.items()), key=lambda shown: shown.key_us)

    def _page(self, name: str = "") -> bool:
        name = name or self.chance.choice(FOLLOWERS)
        position = self._positions[name]
        newer = [shown for shown in self._in_order() if shown.key_us > position]
        page, complete = newer[:PAGE_ITEMS], len(newer) <= PAGE_ITEMS
        if len(page) > 2 and self.defect is Defect.SKIPS_ITEM:
            # The skipped item must be of an acknowledged write, else nothing is missing.
            skipped = page[1]
            self.broken += any(
                event.status is Status.OK and event.kind in (Kind.PUBLISH, Kind.RETRACT) and event.item == skipped.item
                for event in self.events
            )
            page = [page[0], *page[2:]]
        if page and self.defect is Defect.READERS_DIFFER:
            versions = [digest for _, item, digest in self._log if item == page[0].item and digest != page[0].digest]
            if versions and name == FOLLOWERS[0]:
                page[0] = Shown(page[0].item, versions[0], page[0].key_us)
        if newer and self.defect is Defect.EMPTY_PAGE_IS_END and self.chance.random() < 0.5:
            page, complete = [], True
        call = self._invoke(name, Kind.PAGE)
        self._positions[name] = page[-1].key_us if page else position
        self._note(
            name,
            Kind.PAGE,
            Status.OK,
            op=call.op,
            node=NODE,
            shown=tuple(page),
            previous_us=position,
            key_us=self._positions[name],
            complete=complete,
        )
        return complete

    def _push(self) -> bool:
        newer = [version for version in self._log if version[0] > self._mark_us]
        if not newer:
            return False
        key_us, item, digest = newer[0]
        previous_us = self._mark_us
        if self.defect is Defect.PUSHES_UNCHAINED and len(newer) > 1 and self._chain_us:
            previous_us, (key_us, item, digest) = key_us, newer[1]
            self.broken += 1
        values = {"node": NODE, "item": item, "digest": digest, "key_us": key_us, "previous_us": previous_us}
        for _ in range(2 if self.defect is Defect.PUSHES_TWICE else 1):
            self._note(SUBSCRIBER, Kind.PUSH, Status.OK, **values, life=self._life)
        self.broken += self.defect is Defect.PUSHES_TWICE
        self._mark_us = self._chain_us = key_us
        return True

    def _crash(self) -> None:
        self._note("fault", Kind.FAULT, Status.OK, note="kill")
        self._life += 1
        for call in self._calls:
            call.outcome = Status.OK if call.invocation.kind is Kind.RETRACT else Status.UNKNOWN
        marks = [0, *(key_us for key_us, _, _ in self._log if key_us <= self._mark_us)]
        self._mark_us = marks[max(0, len(marks) - 1 - self.chance.randrange(3))]  # marks are written behind the sending
        if self.defect is Defect.ACKNOWLEDGES_BEFORE_COMMIT:
            self._lose()

    def _lose(self) -> None:
        count = min(len(self._log), 3)
        for _ in range(count):
            _, item, digest = self._log.pop()
            self._items = self._before[len(self._log)]
            acknowledged = any(
                event.status is Status.OK
                and event.item == item
                and event.digest == digest
                and event.kind is Kind.PUBLISH
                for event in self.events
            )
            rewritten = any(call.invocation.item == item for call in self._calls)
            self.broken += acknowledged and not rewritten and item not in self._items
        self._mark_us = min(self._mark_us, self._log[-1][0] if self._log else 0)

    def _walk(self, *, created: bool) -> None:
        shown = [Shown(item, *version) for item, version in self._items.items()] if created else self._in_order()
        wrong = self.defect is Defect.COUNTS_WRONG
        self.broken += wrong
        call = self._invoke("walk", Kind.WALK)
        self._note(
            "walk",
            Kind.WALK,
            Status.OK,
            op=call.op,
            node=NODE,
            shown=tuple(shown),
            created=created,
            complete=True,
            total=len(shown) + wrong,
            key_us=shown[-1].key_us if shown else math.floor(self._last_us),
        )
