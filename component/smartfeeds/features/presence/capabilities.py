"""Entity capabilities of clients: requests their service discovery information and verifies it (XEP-0115 section 5.4).

Each unknown hash is requested from one client at a time. Information that does not have the hash is discarded, and the
next client with the same hash is asked. A bare JID cannot cause more than `REQUESTS_MAX` requests in `PERIOD_S`, and at
most `OUTSTANDING_MAX` at once.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

from smartfeeds.core.jid import Jid
from smartfeeds.core.text import attribute
from smartfeeds.errors import LinkError
from smartfeeds.features.presence.tasks import Tasks
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.caps import Caps, CapsKey, DiscoInfo, read_info
from smartfeeds.xmpp.elements import Element

CAPS = ns.tag(ns.CAPS, "c")
ANSWER_S = 30.0  # the longest wait for the response of a client
AT_ONCE = 50  # requests without a response
# Requests to one bare JID that run or wait in the queue of a hash. A client that does not answer occupies its place for
# 30 seconds, so one user must not have many of the `AT_ONCE` places.
OUTSTANDING_MAX = 2
LATER_MAX = 32  # resources of one bare JID that wait until one of its requests has ended
REQUESTS_MAX = 20
PERIOD_S = 600.0
BUDGETS = 10_000  # bare JIDs whose requests are counted; the oldest is dropped
WAITING_MAX = 10_000  # resources whose capabilities are being requested; further ones receive no notifications
TEXT_MAX = 1_000  # characters of an attribute of <c/>

# Parameters: type of the IQ, recipient, payload, seconds to wait. Raises LinkError, TimeoutError.
Call = Callable[[str, str, bytes, float], Awaitable[Element]]


def encode_caps(caps: Caps) -> str:
    """Returns the element of a presence that names capabilities."""
    return (
        f"<c xmlns='{ns.CAPS}' hash='{caps.key.hash}' node='{attribute(caps.node)}' ver='{attribute(caps.key.ver)}'/>"
    )


def read_caps(presence: Element) -> Caps | None:
    """Returns the capabilities that a presence names; None without a hash function, as in the legacy format."""
    element = presence.find(CAPS)
    if element is None:
        return None
    function, ver, node = (element.get(name, "") for name in ("hash", "ver", "node"))
    if not (function and ver and node) or max(map(len, (function, ver, node))) > TEXT_MAX:
        return None
    return Caps(CapsKey(function, ver), node)


class CapabilityReader:
    """Reads the capabilities of the resources of contacts.

    `call` sends an IQ. `is_known` returns whether the information for a hash is stored. `learn` receives verified
    information. `tell` receives a resource, our address and the hash when the information is stored. `clock` returns
    seconds.
    """

    def __init__(
        self,
        call: Call,
        is_known: Callable[[CapsKey], bool],
        learn: Callable[[CapsKey, DiscoInfo], None],
        tell: Callable[[Jid, str, CapsKey], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._call = call
        self._is_known = is_known
        self._learn = learn
        self._tell = tell
        self._clock = clock
        self._at_once = asyncio.Semaphore(AT_ONCE)
        # By hash: the resources that have the hash, each with our address and the node to request.
        self._waiting: dict[CapsKey, OrderedDict[Jid, tuple[str, str]]] = {}
        self._waiting_count = 0
        self._budgets: OrderedDict[Jid, tuple[float, int]] = OrderedDict()
        self._outstanding: Counter[Jid] = Counter()  # by bare JID
        # By bare JID: the resources that have no place in a queue yet, each with its newest capabilities.
        self._later: dict[Jid, dict[Jid, tuple[str, Caps]]] = {}
        self._tasks = Tasks("capabilities")

    def note(self, sender: Jid, address: str, caps: Caps) -> None:
        """Reads the capabilities of a resource that has sent its presence to one of our addresses."""
        if self._is_known(caps.key):
            self._tell(sender, address, caps.key)
            return
        later = self._later.get(sender.bare, {})
        if sender in later:
            later[sender] = (address, caps)
            return
        if self._waiting_count >= WAITING_MAX or sender in self._waiting.get(caps.key, ()):
            return
        if self._outstanding[sender.bare] < OUTSTANDING_MAX:
            self._enter(sender, address, caps)
        elif len(later) < LATER_MAX:
            self._waiting_count += 1
            self._later.setdefault(sender.bare, later)[sender] = (address, caps)

    async def idle(self) -> None:
        """Waits until no request runs."""
        await self._tasks.idle()

    async def stop(self) -> None:
        """Cancels all requests."""
        self._waiting_count -= sum(map(len, self._later.values()))
        self._later.clear()
        await self._tasks.stop()

    def _enter(self, sender: Jid, address: str, caps: Caps) -> None:
        """Adds a resource to the queue of its hash."""
        self._outstanding[sender.bare] += 1
        self._waiting_count += 1
        waiting = self._waiting.get(caps.key)
        if waiting is None:
            waiting = self._waiting[caps.key] = OrderedDict()
            task = self._tasks.spawn(self._request(caps.key, waiting))
            task.add_done_callback(partial(self._end, caps.key))
        waiting[sender] = (address, caps.node)

    def _leave(self, bare: Jid) -> None:
        """Gives the place of a bare JID to its next resource."""
        self._outstanding[bare] -= 1
        while bare in self._later and self._outstanding[bare] < OUTSTANDING_MAX:
            later = self._later[bare]
            sender = next(iter(later))
            address, caps = later.pop(sender)
            self._waiting_count -= 1
            if not later:
                del self._later[bare]
            self.note(sender, address, caps)
        if not self._outstanding[bare]:
            del self._outstanding[bare]

    async def _request(self, key: CapsKey, waiting: OrderedDict[Jid, tuple[str, str]]) -> None:
        """Requests the information from one resource after the other, until a response has the hash."""
        while waiting:
            sender, (address, node) = waiting.popitem(last=False)
            self._waiting_count -= 1
            try:
                info = await self._ask(sender, f"{node}#{key.ver}")
            finally:
                self._leave(sender.bare)
            if info is not None and info.is_well_formed and info.verification(key.hash) == key.ver:
                self._learn(key, info)
                self._tell(sender, address, key)
                for other, (its_address, _) in waiting.items():
                    self._tell(other, its_address, key)
                return

    async def _ask(self, to: Jid, node: str) -> DiscoInfo | None:
        if not self._admit(to.bare):
            return None
        payload = f"<query xmlns='{ns.DISCO_INFO}' node='{attribute(node)}'/>".encode()
        try:
            async with self._at_once:
                return read_info(await self._call("get", str(to), payload, ANSWER_S))
        except (LinkError, TimeoutError):
            return None

    def _admit(self, bare: Jid) -> bool:
        """Counts a request to a bare JID. Returns False if there were too many."""
        now_s = self._clock()
        since_s, count = self._budgets.get(bare, (now_s, 0))
        if now_s - since_s > PERIOD_S:
            since_s, count = now_s, 0
        if count >= REQUESTS_MAX:
            return False
        self._budgets[bare] = (since_s, count + 1)
        if len(self._budgets) > BUDGETS:
            self._budgets.popitem(last=False)
        return True

    def _end(self, key: CapsKey, task: "asyncio.Task[None]") -> None:
        waiting = self._waiting.pop(key)
        self._waiting_count -= len(waiting)
        for sender in waiting:
            self._leave(sender.bare)
        if not task.cancelled():
            task.result()
