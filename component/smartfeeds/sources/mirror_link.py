"""Publishing as a mirror does it: the item's bytes as they are, and the answer as the client reads errors."""

from collections.abc import Awaitable, Callable
from xml.etree.ElementTree import fromstring

from smartfeeds.client.errors import RequestTimeoutError
from smartfeeds.client.stanzas import PUBSUB, read_error
from smartfeeds.core.text import attribute
from smartfeeds.sources.mirror_out import Publish

# (type, to, payload) -> the reply stanza. Raises LinkError or TimeoutError where there is none.
Ask = Callable[[str, str, bytes], Awaitable[bytes]]


def publisher_over(ask: Ask) -> Publish:
    """What publishes an item over such a wire."""

    async def publish(service: str, node: str, item_id: str, payload: bytes) -> None:
        named = f" id='{attribute(item_id)}'" if item_id else ""
        head = f"<pubsub xmlns='{PUBSUB}'><publish node='{attribute(node)}'><item{named}>"
        try:
            data = await ask("set", service, head.encode() + payload + b"</item></publish></pubsub>")
        except TimeoutError:
            raise RequestTimeoutError(f"{service} did not answer in time") from None
        reply = fromstring(data)
        if reply.get("type") == "error":
            raise read_error(reply)

    return publish
