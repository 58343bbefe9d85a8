"""Presence stanzas: requests about contacts, the presence of contacts, and the presence of the service (RFC 6121).

The service is available while the link is up. A component has no session at its server, so the service itself sends
its presence to each contact and its probes after each connection.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from smartfeeds import system
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.contacts import Contact
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.suboptions import ONLINE, SHOWS
from smartfeeds.core.text import attribute
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError, LinkError, StoreError
from smartfeeds.features.presence import rows
from smartfeeds.features.presence.capabilities import CapabilityReader, read_caps
from smartfeeds.features.presence.interests import Interests
from smartfeeds.features.presence.last_items import LastItems
from smartfeeds.features.presence.requests import (
    AVAILABLE,
    CHANGES,
    GREETINGS,
    Arrival,
    ChangeContact,
    ContactAnswer,
    ContactArrived,
    ContactLeft,
    ContactProbe,
    NotifyRequested,
    end_temporary,
    has_temporary,
    list_temporary,
)
from smartfeeds.features.presence.states import Availability, OnlineResource
from smartfeeds.features.presence.tasks import Tasks
from smartfeeds.push.side import Interest
from smartfeeds.service.answers import ask
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import Request
from smartfeeds.service.steps import WriteStep
from smartfeeds.service.subscriptions import STEP
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.caps import CapsKey
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.encode import encode_last_item
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.stanza_side import PresenceReader, StanzaSide
from smartfeeds.xmpp.stream import ComponentStream

log = structlog.get_logger()

# Contacts that are greeted at once, and the pause between two such pieces: 1,000 contacts a second. Their servers
# answer each probe, and the answers must not delay the requests of other users.
GREETED = 100
PAUSE_S = 0.1
LEAVE_S = 2.0  # a stop of the service waits no longer than this until all contacts have its unavailable presence
RETRY_S = 1.0  # the pause after a failure of the store
LOADED = 1_000  # contacts that one transaction reads: some 5 ms
# How long after a connection a contact that has not answered the probe counts as offline for good.
OFFLINE_S = 60.0
_PRIORITY = ns.tag(COMPONENT_NS, "priority")
_SHOW = ns.tag(COMPONENT_NS, "show")
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}", re.ASCII)


def presence_stanza(kind: str, address: str, jid: str, content: str = "") -> bytes:
    """Returns a presence stanza from our address to a bare JID. `kind` is its type, empty for available presence."""
    type_attribute = f" type='{kind}'" if kind else ""
    return f"<presence from='{attribute(address)}' to='{attribute(jid)}'{type_attribute}>{content}</presence>".encode()


def priority_of(element: Element) -> int:
    """Returns the priority of a resource, 0 if it is absent or outside of -128 to 127 (RFC 6121 section 4.7.2.3)."""
    text = (element.findtext(_PRIORITY) or "").strip()
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if -128 <= number <= 127 else 0


def show_of(element: Element) -> str:
    """Returns the state of a resource; ONLINE if it is absent or RFC 6121 section 4.7.2.1 does not define it."""
    text = (element.findtext(_SHOW) or "").strip()
    return text if text in SHOWS else ONLINE


class Presences:
    """Reads presence stanzas, sends the presence of the service, and stores which contacts are available.

    `release` starts the delivery of held events. `description` returns the elements by which the domain announces its
    capabilities and its picture, and `now_us` the time. `sleep` pauses for seconds.
    """

    def __init__(
        self,
        service: FeedService,
        link: ComponentStream,
        release: Callable[[Consumer], None],
        description: Callable[[], str],
        now_us: Callable[[], int],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._service = service
        self._outbox = link.outbox
        self._describe = description
        self._description = ""
        self._release = release
        self._now_us = now_us
        self._sleep = sleep
        self.availability = Availability()
        self.interests = Interests()
        self.capabilities = CapabilityReader(
            link.call,
            self.interests.knows,
            lambda key, info: self.interests.learn(key, info.notified_nodes),
            self._note_interests,
            clock=lambda: now_us() / US_PER_S,
        )
        self._tasks = Tasks("presence")
        # By bare JID: the requests that wait for the task of this JID. Each JID has at most one task.
        self._requests: dict[Jid, dict[Jid, NotifyRequested]] = {}
        self._last_items = LastItems()
        # The resources whose last presence another process has handled.
        self._shared: set[Jid] = set()
        # By bare JID: presence behind a change of the contact that another process has made, and that is being read.
        self._behind: dict[Jid, list[tuple[Element, Jid, str]]] = {}
        # By the type of the request; the router calls the functions.
        self.handlers: Mapping[type[Request], Callable[[Any], Awaitable[object]]] = {
            ChangeContact: self._change,
            ContactProbe: self._change,
            ContactArrived: self._greet,
            ContactLeft: self._end_subscriptions,
        }

    def read(self, element: Element, sender: Jid, address: str) -> Request | None:
        """Returns the request of a presence stanza, or None if nothing follows from it."""
        self._shared.discard(sender)
        return self._read(element, sender, address)

    def _read(self, element: Element, sender: Jid, address: str) -> Request | None:
        kind = element.get("type", AVAILABLE)
        if kind in CHANGES:
            return ChangeContact(sender, address, kind)
        if kind == "probe":
            return ContactProbe(sender, address)
        if kind == AVAILABLE:
            return self._read_available(element, sender, address) if sender.resource else None
        if kind not in ("unavailable", "error"):
            return None
        bare = sender.bare_text
        names = self.availability.leave(address, bare, sender.resource)
        if not names and self.availability.is_available(bare) is None:
            return None  # not a contact
        if not names and sender.resource not in self.availability.resources_of(bare):
            # A subscription that ends with the presence may be newer than the presence of this resource.
            names = [sender.resource]
        return self._note_departure(sender, address, names)

    @property
    def stanzas(self) -> StanzaSide:
        """The handlers of presence of users."""
        return StanzaSide(presence=(PresenceReader(self.read, self.note_shared),), handlers=self.handlers)

    def note_shared(self, element: Element, sender: Jid, address: str) -> None:
        """Notes presence that another process has handled. Held events may be waiting in this process.

        That process has sent the newest items, so this process does not send them again.
        """
        if sender.bare in self._behind:
            # A contact sends its presence at once, and it counts only when the contact is known.
            self._behind[sender.bare].append((element, sender, address))
            return
        bare = sender.bare_text
        if self.availability.watches(address, bare):
            self._shared.add(sender)
        request = self._read(element, sender, address)
        if sender.resource not in self.availability.resources_of(bare):
            self._shared.discard(sender)
        if isinstance(request, ContactArrived):
            self._tasks.spawn(_logged(self._release_held(request)))
        elif isinstance(request, ChangeContact):
            self._behind[sender.bare] = []
            self._tasks.spawn(self._note_change(request))

    async def _note_change(self, request: ChangeContact) -> None:
        try:
            await _logged(self._note_contact(request))
        finally:
            for element, sender, address in self._behind.pop(request.actor.bare):
                self.note_shared(element, sender, address)

    async def _note_contact(self, request: ChangeContact) -> None:
        """Reads a contact that another process has changed."""
        address, jid = request.service, request.actor.bare_text
        contact = await self._service.read(lambda tx, _context: tx.contact(address, jid), turn=request.turn)
        if not self._apply(request, contact):
            await self._release_held(ContactArrived(request.actor.bare, address, is_new=False))

    async def _release_held(self, request: ContactArrived) -> None:
        after_no: int | None = request.after_no
        while after_no is not None:
            answer = await ask(self._service.handle, replace(request, after_no=after_no), Arrival)
            for consumer in answer.held:
                self._release(consumer)
            after_no = answer.next_after

    def _read_available(self, element: Element, sender: Jid, address: str) -> ContactArrived | None:
        bare = sender.bare_text
        former = self.availability.resources_of(bare).get(sender.resource)
        # A server may leave out capabilities that have not changed (XEP-0115 section 8.4).
        caps = read_caps(element) or (former.caps if former is not None else None)
        resource = OnlineResource(priority_of(element), show_of(element), caps)
        if not self.availability.note(address, bare, sender.resource, resource):
            return None
        if caps is not None and (former is None or former.caps != caps):
            if not self.interests.knows(caps.key):
                # The former requests end now, because a client may never explain its new capabilities.
                self.interests.remove(str(sender))
            self.capabilities.note(sender, address, caps)
        if former is None or former[:2] != resource[:2]:
            return ContactArrived(sender, address, former is None)
        return None

    def _note_departure(self, sender: Jid, address: str, names: Sequence[str]) -> ContactLeft:
        bare = sender.bare_text
        for name in names:
            self.interests.remove(f"{bare}/{name}")
            self._shared.discard(replace(sender, resource=name))
            self._requests.get(sender.bare, {}).pop(replace(sender, resource=name), None)
        return ContactLeft(sender, address, tuple(names), not self.availability.resources_of(bare))

    def _withdraw(self, bare: Jid, address: str) -> None:
        """Ends the requests that resources have sent to an address of which they are no contact any more.

        A resource that is available at another address counts as if it had sent its capabilities there.
        """
        for name, resource in self.availability.resources_of(str(bare)).items():
            jid = replace(bare, resource=name)
            interest = self.interests.of_resource(str(jid))
            if interest is None or interest.address != address:
                continue
            self.interests.remove(interest.jid)
            if resource.caps is not None:
                self.capabilities.note(jid, self.availability.addresses_of(str(bare), name)[0], resource.caps)

    def _note_interests(self, sender: Jid, address: str, key: CapsKey) -> None:
        """Stores which nodes a resource requests, unless it went offline or changed its capabilities meanwhile."""
        resource = self.availability.resources_of(sender.bare_text).get(sender.resource)
        if resource is None or resource.caps is None or resource.caps.key != key:
            return
        # Minus one, so that the resource also receives an item that is published in this microsecond.
        nodes = self.interests.add(key, Interest(str(sender), address, self._now_us() - 1))
        if nodes and sender not in self._shared:
            self._announce_soon(NotifyRequested(sender, address, nodes))

    def _announce_soon(self, request: NotifyRequested) -> None:
        """Announces the newest items of nodes in the background. The request of a resource replaces the one that waits,
        so that a resource that changes its capabilities often does not cause work without bound."""
        jid = request.actor
        if jid.bare not in self._requests:
            self._requests[jid.bare] = {}
            self._tasks.spawn(self._announce_all(jid.bare))
        requests = self._requests[jid.bare]
        if (former := requests.get(jid)) is not None:
            current = self.interests.nodes_of(str(jid))
            names = {*former.nodes, *request.nodes}
            request = replace(request, nodes=tuple(node for node in current if node in names))
        requests[jid] = request

    async def _announce_all(self, bare: Jid) -> None:
        requests = self._requests[bare]
        try:
            while requests:
                request = requests.pop(next(iter(requests)))
                interest = self.interests.of_resource(str(request.actor))
                if interest is not None and interest.address == request.service:
                    await _logged(self._announce(request))
        finally:
            del self._requests[bare]

    async def _announce(self, request: NotifyRequested | ContactArrived) -> Arrival:
        """Sends the newest items that a resource receives when it comes online or requests nodes."""
        answer = await ask(self._service.handle, request, Arrival)
        now_us = self._now_us()
        messages = [
            encode_last_item(each, item, address, system.new_id())
            for address, each in answer.last
            if (item := each.last) is not None
            and self._last_items.admit(request.actor, each.subscription.node, item.id, item.modified_us, now_us)
        ]
        await self._outbox.notify(messages)
        return answer

    async def idle(self) -> None:
        """Waits until all work that presence of contacts has caused is done."""
        await self.capabilities.idle()
        await self._tasks.idle()

    async def stop(self) -> None:
        """Cancels the work that presence of contacts has caused."""
        await self.capabilities.stop()
        await self._tasks.stop()

    async def _change(self, request: ChangeContact | ContactProbe) -> ContactAnswer:
        answer = await ask(self._service.handle, request, ContactAnswer)
        address, jid = request.service, request.actor.bare_text
        # Before the responses are sent, because the contact may send its presence at once.
        is_watched = self._apply(request, answer.contact)
        for kind in answer.kinds:
            self._outbox.reply(self._presence(kind, address, jid))
        if not is_watched and isinstance(request, ChangeContact):
            # The service does not see this presence any more, so events that wait for it are sent now.
            await self._greet(ContactArrived(request.actor.bare, address, is_new=False))
        return answer

    def _apply(self, request: ChangeContact | ContactProbe, contact: Contact | None) -> bool:
        """Stores the presence of a contact from now on, or no more. Returns whether it is stored."""
        address, jid = request.service, request.actor.bare_text
        if contact is not None and contact.is_watched:
            self.availability.watch(address, jid, granted=contact.is_granted)
            return True
        self._note_departure(request.actor, address, self.availability.forget(address, jid))
        self._withdraw(request.actor.bare, address)
        return False

    async def _greet(self, request: ContactArrived) -> None:
        """Sends the newest items and the held events that a resource receives when it comes online."""
        with contextlib.suppress(LinkError):
            after_no: int | None = request.after_no
            while after_no is not None:
                answer = await self._announce(replace(request, after_no=after_no))
                for consumer in answer.held:
                    self._release(consumer)
                after_no = answer.next_after

    async def _end_subscriptions(self, request: ContactLeft) -> None:
        """Ends the subscriptions that end with the presence, if any: a read costs less than an empty write."""
        bare = request.actor.bare_text
        if await self._service.read(partial(has_temporary, bare=bare), turn=request.turn):
            await self._end(request)

    async def _end(self, request: ContactLeft) -> None:
        """Ends the subscriptions, also of users who may not use the service: the service wants it, not the user."""
        steps: WriteStep[object] = partial(end_temporary, request=request)
        await self._service.write(steps, turn=request.turn)

    def _presence(self, kind: str, address: str, jid: str) -> bytes:
        # The information of other addresses is that of a node, and changes with it.
        description = ""
        if kind == AVAILABLE and address == self._service.policy.domain:
            description = self._description = self._description or self._describe()
        return presence_stanza(kind, address, jid, description)

    async def load(self) -> None:
        """Reads the contacts, so that they count as offline until they have sent their presence. Raises StoreError.

        Deliveries must start later, because a user who is no contact receives events at once.
        """
        self.availability.clear()
        self.interests.clear()
        self._shared.clear()
        self._last_items.clear()  # each resource counts as new, and what was sent may be lost
        after = ("", "")
        while contacts := await self._contacts(after, LOADED):
            for contact in contacts:
                if contact.is_watched:
                    self.availability.watch(contact.address, contact.jid, granted=contact.is_granted)
            after = (contacts[-1].address, contacts[-1].jid)

    async def end_temporary(self) -> None:
        """Ends the temporary subscriptions of users who went offline while the link was down.

        Waits `OFFLINE_S` first, so that clients can answer the probes after the connection.
        """
        epoch = self._outbox.epoch
        await self._sleep(OFFLINE_S)
        after_no = 0
        while self._outbox.epoch == epoch:
            part = await self._service.read(partial(list_temporary, after_no=after_no), turn="presence")
            for subscription in part:
                jid = parse_jid(subscription.jid)
                names = self.availability.resources_of(jid.bare_text) if jid is not None else {}
                if jid is not None and (jid.resource not in names if jid.resource else not names):
                    await self._end(ContactLeft(jid, subscription.service, (jid.resource,), is_offline=not names))
            if len(part) < STEP:
                return
            after_no = part[-1].sub_no

    async def resume(self) -> None:
        """Sends presence and probes to all contacts after a connection, in pieces. Ends with the connection."""
        epoch = self._outbox.epoch
        after = ("", "")
        while self._outbox.epoch == epoch:
            try:
                contacts = await self._contacts(after, GREETED)
                await self._outbox.notify(self._greetings(contacts))
            except LinkError:
                return  # the next connection starts again
            except StoreError as error:
                log.error("store_failed", reason=str(error))
                await self._sleep(RETRY_S)
                continue
            if len(contacts) < GREETED:
                return
            after = (contacts[-1].address, contacts[-1].jid)
            await self._sleep(PAUSE_S)

    async def leave(self) -> None:
        """Sends unavailable presence to all contacts before the service stops. A slow link or store ends it early."""
        with contextlib.suppress(LinkError, StoreError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                after = ("", "")
                while contacts := await self._contacts(after, GREETED):
                    await self._outbox.notify(
                        [self._presence("unavailable", each.address, each.jid) for each in contacts]
                    )
                    after = (contacts[-1].address, contacts[-1].jid)

    async def _contacts(self, after: tuple[str, str], limit: int) -> list[Contact]:
        return await self._service.read(lambda tx, _: rows.contacts(tx, after, limit), turn="presence")

    def _greetings(self, contacts: Iterable[Contact]) -> list[bytes]:
        return [self._presence(kind, each.address, each.jid) for each in contacts for kind in GREETINGS[each.state]]


async def _logged(work: Awaitable[object]) -> None:
    """Runs work in the background and logs its failure. The next presence of the contact repeats it."""
    try:
        await work
    except LinkError:
        log.debug("presence_interrupted")
    except FeedError as error:
        # A user on a block list is still a contact, whose presence may come.
        log.debug("presence_refused", reason=str(error))
    except StoreError as error:
        log.error("store_failed", reason=str(error))
