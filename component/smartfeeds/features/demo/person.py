"""A user of the demonstrations with an XMPP client: publishes, and comes and goes."""

import asyncio
from xml.etree.ElementTree import Element, SubElement

from smartfeeds.client.feed_client import FeedClient
from smartfeeds.client.stanzas import PUBSUB
from smartfeeds.client.transport import ClientLink
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.errors import LinkError
from smartfeeds.local.process import HOST, LocalAccount

LOGIN_S = 30.0
_OWNER = f"{PUBSUB}#owner"


class DemoUser:
    """A user with a session of their own. Requests raise FollowError, as those of FeedClient do."""

    def __init__(self, account: LocalAccount, port: int) -> None:
        self.jid = account.jid
        self.link = ClientLink(account.jid, account.password, server=(HOST, port), plaintext=True)
        self._client = FeedClient(self.link)

    async def login(self) -> None:
        """Connects and becomes available. Raises LinkError, LoginError."""
        try:
            async with asyncio.timeout(LOGIN_S):
                await self._client.__aenter__()
        except TimeoutError:
            raise LinkError(f"{self.jid} cannot log in: no answer in {LOGIN_S:.0f} s") from None

    async def logout(self) -> None:
        """Ends the session."""
        await self._client.aclose()

    async def create(self, service: str, node: str) -> None:
        """Creates a node with the defaults of the service."""
        await self._client.create(xmpp_uri(service, node))

    async def let_publish(self, service: str, node: str, jid: str) -> None:
        """Makes an entity a publisher of a node of this user. Raises RequestError."""
        pubsub = Element(f"{{{_OWNER}}}pubsub")
        affiliations = SubElement(pubsub, f"{{{_OWNER}}}affiliations", {"node": node})
        SubElement(affiliations, f"{{{_OWNER}}}affiliation", {"jid": jid, "affiliation": "publisher"})
        await self.link.ask("set", service, pubsub)

    async def publish(self, service: str, node: str, title: str, item_id: str = "") -> str:
        """Publishes an Atom entry and returns its id after the service has acknowledged it."""
        author = self.jid.partition("@")[0]
        return await self._client.publish(xmpp_uri(service, node), title=title, author=author, item_id=item_id)

    async def retract(self, service: str, node: str, item_id: str) -> None:
        """Deletes an item."""
        await self._client.retract(xmpp_uri(service, node), item_id)
