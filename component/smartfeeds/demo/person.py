"""Somebody with an XMPP client on the demonstration's server: publishes, and comes and goes."""

import asyncio
import uuid
from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from slixmpp import ClientXMPP

from smartfeeds.client.stanzas import PUBSUB
from smartfeeds.client.transport import SlixLink
from smartfeeds.demo.process import HOST, DemoAccount
from smartfeeds.errors import LinkError

LOGIN_S = 30.0
_OWNER = f"{PUBSUB}#owner"
_ATOM = "http://www.w3.org/2005/Atom"


class DemoUser(ClientXMPP):
    """A logged-in client; `link` is what a follower and requests go over."""

    def __init__(self, account: DemoAccount, port: int) -> None:
        plain = {"unencrypted_plain": True, "unencrypted_scram": True}
        super().__init__(account.jid, account.password, plugin_config={"feature_mechanisms": plain})
        self.enable_plaintext, self.enable_starttls, self.enable_direct_tls = True, False, False
        self._port = port
        self.link = SlixLink(self)

    async def login(self) -> None:
        """Connects and becomes available. Raises LinkError."""
        online: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(reason: Any) -> None:
            if not online.done():
                online.set_exception(LinkError(f"{self.boundjid.bare} cannot log in: {reason or 'no connection'}"))

        def succeed(_event: Any) -> None:
            if not online.done():
                online.set_result(None)

        self.add_event_handler("session_start", succeed)
        for event in ("failed_all_auth", "connection_failed", "disconnected"):
            self.add_event_handler(event, fail)
        self.connect(HOST, self._port)
        try:
            await asyncio.wait_for(online, LOGIN_S)
        except TimeoutError:
            raise LinkError(f"{self.boundjid.bare} cannot log in: no answer") from None
        self.send_presence()

    async def logout(self) -> None:
        """Ends the session."""
        await self.disconnect(wait=2.0)
        if self._run_out_filters is not None:
            self._run_out_filters.cancel()

    async def create(self, service: str, node: str) -> None:
        """Makes a node with the service's defaults. Raises RequestError."""
        pubsub = Element(f"{{{PUBSUB}}}pubsub")
        SubElement(pubsub, f"{{{PUBSUB}}}create", {"node": node})
        await self.link.ask("set", service, pubsub)

    async def let_publish(self, service: str, node: str, jid: str) -> None:
        """Lets somebody publish to a node of one's own. Raises RequestError."""
        pubsub = Element(f"{{{_OWNER}}}pubsub")
        affiliations = SubElement(pubsub, f"{{{_OWNER}}}affiliations", {"node": node})
        SubElement(affiliations, f"{{{_OWNER}}}affiliation", {"jid": jid, "affiliation": "publisher"})
        await self.link.ask("set", service, pubsub)

    async def publish(self, service: str, node: str, title: str, item_id: str = "") -> str:
        """Publishes an Atom entry and returns its id when the service has acknowledged it. Raises RequestError."""
        item_id = item_id or str(uuid.uuid4())
        pubsub = Element(f"{{{PUBSUB}}}pubsub")
        publish = SubElement(pubsub, f"{{{PUBSUB}}}publish", {"node": node})
        entry = SubElement(SubElement(publish, f"{{{PUBSUB}}}item", {"id": item_id}), f"{{{_ATOM}}}entry")
        SubElement(entry, f"{{{_ATOM}}}id").text = f"urn:x-demo:{item_id}"
        SubElement(entry, f"{{{_ATOM}}}title").text = title
        SubElement(entry, f"{{{_ATOM}}}updated").text = datetime.now(UTC).isoformat(timespec="seconds")
        author = SubElement(entry, f"{{{_ATOM}}}author")
        SubElement(author, f"{{{_ATOM}}}name").text = str(self.boundjid.user)
        await self.link.ask("set", service, pubsub)
        return item_id

    async def retract(self, service: str, node: str, item_id: str) -> None:
        """Deletes an item. Raises RequestError."""
        pubsub = Element(f"{{{PUBSUB}}}pubsub")
        retract = SubElement(pubsub, f"{{{PUBSUB}}}retract", {"node": node, "notify": "true"})
        SubElement(retract, f"{{{PUBSUB}}}item", {"id": item_id})
        await self.link.ask("set", service, pubsub)
