"""Presence stanzas: requests about contacts, the presence of contacts, and the presence of the service (RFC 6121).

The service is available while the link is up. A component has no session at its server, so the service itself sends
its presence to each contact and its probes after each connection.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable

import structlog

from smartfeeds.core.jid import Jid
from smartfeeds.core.presence import Availability, Contact, Resource
from smartfeeds.core.text import attribute
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.presence import AVAILABLE, CHANGES, GREETINGS, ChangeContact, ContactAnswer, ContactProbe
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.outbox import Outbox
from smartfeeds.xmpp.parsing import COMPONENT_NS

log = structlog.get_logger()

# Contacts that are greeted at once, and the pause between two such pieces: 1,000 contacts a second. Their servers
# answer each probe, and the answers must not delay the requests of other users.
GREETED = 100
PAUSE_S = 0.1
LEAVE_S = 2.0  # a stop of the service waits no longer than this until all contacts have its unavailable presence
RETRY_S = 1.0  # the pause after a failure of the store
_PRIORITY = ns.tag(COMPONENT_NS, "priority")
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}", re.ASCII)


def presence(kind: str, address: str, jid: str) -> bytes:
    """Returns a presence stanza from our address to a bare JID. The type of available presence is empty."""
    type_attribute = f" type='{kind}'" if kind else ""
    return f"<presence from='{attribute(address)}' to='{attribute(jid)}'{type_attribute}/>".encode()


def priority_of(element: Element) -> int:
    """Returns the priority of a resource, 0 if it is absent or not from -128 to 127 (RFC 6121 section 4.7.2.3)."""
    text = (element.findtext(_PRIORITY) or "").strip()
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if -128 <= number <= 127 else 0


class Presences:
    """Reads presence stanzas, sends those of the service, and stores which contacts are available.

    `sleep` pauses for seconds.
    """

    def __init__(
        self,
        service: FeedService,
        outbox: Outbox,
        availability: Availability,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._service = service
        self._outbox = outbox
        self._sleep = sleep
        self.availability = availability

    def read(self, element: Element, sender: Jid, address: str) -> ChangeContact | ContactProbe | None:
        """Returns the request of a presence stanza, or None if it only changes who is available."""
        kind = element.get("type", AVAILABLE)
        if kind in CHANGES:
            return ChangeContact(sender, address, kind)
        if kind == "probe":
            return ContactProbe(sender, address)
        bare, resource = str(sender.bare), sender.resource
        if kind == AVAILABLE:
            if resource:
                self.availability.note(address, bare, resource, Resource(priority_of(element)))
        elif kind in ("unavailable", "error"):
            self.availability.leave(address, bare, resource)
        return None

    async def handle(self, request: ChangeContact | ContactProbe) -> ContactAnswer:
        """Applies a request and sends the responses, after the change is durable. Raises StoreError."""
        answer = await self._service.handle(request)
        assert isinstance(answer, ContactAnswer)
        address, jid = request.service, str(request.actor.bare)
        # Before the responses are sent, because the contact may send its presence at once.
        if answer.contact is not None and answer.contact.is_watched:
            self.availability.watch(address, jid, granted=answer.contact.is_granted)
        else:
            self.availability.forget(address, jid)
        for kind in answer.kinds:
            self._outbox.reply(presence(kind, address, jid))
        return answer

    async def resume(self) -> None:
        """Sends presence and probes to all contacts after a connection, in pieces. Ends with the connection."""
        epoch = self._outbox.epoch
        self.availability.clear()
        after = ("", "")
        while self._outbox.epoch == epoch:
            try:
                contacts = await self._contacts(after)
                for contact in contacts:
                    if contact.is_watched:
                        self.availability.watch(contact.address, contact.jid, granted=contact.is_granted)
                await self._outbox.notify(_greetings(contacts))
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
                while contacts := await self._contacts(after):
                    await self._outbox.notify([presence("unavailable", each.address, each.jid) for each in contacts])
                    after = (contacts[-1].address, contacts[-1].jid)

    async def _contacts(self, after: tuple[str, str]) -> list[Contact]:
        return await self._service.read(lambda tx, _: tx.contacts(after, GREETED), turn="presence")


def _greetings(contacts: Iterable[Contact]) -> list[bytes]:
    return [presence(kind, each.address, each.jid) for each in contacts for kind in GREETINGS[each.state]]
