"""A person with an ordinary chat client on a real server."""

from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from support.client import Client

Element = etree._Element
_BODY = "{jabber:client}body"


def say(client: Client, to: str, text: str, inner: str = "", *, kind: str = "chat", message_id: str = "m1") -> None:
    """Sends a message."""
    head = f"<message type='{kind}' id='{message_id}' to={quoteattr(to)}>"
    client.send_raw(f"{head}<body>{escape(text)}</body>{inner}</message>")


async def ask(client: Client, to: str, text: str, inner: str = "", *, message_id: str = "m1") -> str:
    """Sends a message and returns the next one that the bot sends."""
    say(client, to, text, inner, message_id=message_id)
    return await hear(client, to)


async def hear(client: Client, sender: str) -> str:
    """The body of the next message from a bare JID."""
    return text_of(await next_from(client, sender))


async def next_from(client: Client, sender: str) -> Element:
    """The next message with a body from a bare JID; others are dropped."""
    while True:
        message = await client.next_message()
        if message.get("from", "").partition("/")[0] == sender and message.find(_BODY) is not None:
            return message


def text_of(message: Element) -> str:
    """The body of a message."""
    return message.findtext(_BODY) or ""
