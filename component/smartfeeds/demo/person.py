"""A user of the demonstrations with an XMPP client: publishes, and comes and goes."""

import asyncio
import uuid
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement

from smartfeeds.client.stanzas import PUBSUB, request
from smartfeeds.client.transport import ClientLink
from smartfeeds.demo.process import HOST, DemoAccount
from smartfeeds.errors import LinkError

LOGIN_S = 30.0
_OWNER = f"{PUBSUB}#owner"
_ATOM = "http://www.w3.org/2005/Atom"


class DemoUser:
    """A user with a client of their own. It listens to its link only to know when it is online."""

    def __init__(self, account: DemoAccount, port: int) -> None:
        self.jid = account.jid
        self.link = ClientLink(account.jid, account.password, server=(HOST, port), plaintext=True)
        self._online: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def login(self) -> None:
        """Connects and becomes available. Raises LinkError, LoginError."""
        self.link.open(self)
        try:
            await asyncio.wait_for(self._online, LOGIN_S)
        except TimeoutError:
            raise LinkError(f"{self.jid} cannot log in: no answer in {LOGIN_S:.0f} s") from None

    async def logout(self) -> None:
        """Ends the session."""
        await self.link.close()

    def on_up(self) -> None:
        """A session has started."""
        if not self._online.done():
            self._online.set_result(None)

    def on_down(self) -> None:
        """The session has ended. The link connects again."""

    def on_failure(self, error: Exception) -> None:
        """The server refuses the login."""
        if not self._online.done():
            self._online.set_exception(error)

    def on_message(self, message: Element) -> None:
        """Notifications are for followers, which have links of their own."""

    async def create(self, service: str, node: str) -> None:
        """Creates a node with the defaults of the service. Raises RequestError."""
        await self.link.ask("set", service, request("create", node=node))

    async def let_publish(self, service: str, node: str, jid: str) -> None:
        """Makes an entity a publisher of a node of this user. Raises RequestError."""
        pubsub = Element(f"{{{_OWNER}}}pubsub")
        affiliations = SubElement(pubsub, f"{{{_OWNER}}}affiliations", {"node": node})
        SubElement(affiliations, f"{{{_OWNER}}}affiliation", {"jid": jid, "affiliation": "publisher"})
        await self.link.ask("set", service, pubsub)

    async def publish(self, service: str, node: str, title: str, item_id: str = "") -> str:
        """Publishes an Atom entry and returns its id after the service has acknowledged it. Raises RequestError."""
        item_id = item_id or str(uuid.uuid4())
        pubsub = request("publish", node=node)
        entry = SubElement(SubElement(pubsub[0], f"{{{PUBSUB}}}item", {"id": item_id}), f"{{{_ATOM}}}entry")
        SubElement(entry, f"{{{_ATOM}}}id").text = f"urn:x-demo:{item_id}"
        SubElement(entry, f"{{{_ATOM}}}title").text = title
        SubElement(entry, f"{{{_ATOM}}}updated").text = datetime.now(UTC).isoformat(timespec="seconds")
        author = SubElement(entry, f"{{{_ATOM}}}author")
        SubElement(author, f"{{{_ATOM}}}name").text = self.jid.partition("@")[0]
        await self.link.ask("set", service, pubsub)
        return item_id

    async def retract(self, service: str, node: str, item_id: str) -> None:
        """Deletes an item. Raises RequestError."""
        pubsub = request("retract", node=node, notify="true")
        SubElement(pubsub[0], f"{{{PUBSUB}}}item", {"id": item_id})
        await self.link.ask("set", service, pubsub)
