"""A person who writes to the bot of a component in this process."""

from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from support.component import DOMAIN, Component

Element = etree._Element
BODY = "{jabber:component:accept}body"


async def write(component: Component, user: str, text: str, inner: str = "", **attributes: str) -> list[str]:
    """Sends a chat message and returns the texts that the user's address receives because of it."""
    return [body_of(message) for message in await send(component, user, text, inner, **attributes)]


async def send(component: Component, user: str, text: str, inner: str = "", **attributes: str) -> list[Element]:
    """Sends a chat message and returns the messages that the user's address receives because of it."""
    await deliver(component, user, text, inner, **attributes)
    return await component.events(user)


async def deliver(component: Component, user: str, text: str, inner: str = "", **attributes: str) -> None:
    """Sends a chat message and waits for nothing."""
    values = {"type": "chat", "id": "m1", "to": DOMAIN, "from": user, **attributes}
    written = " ".join(f"{name.replace('_', ':')}={quoteattr(value)}" for name, value in values.items())
    body = f"<body>{escape(text)}</body>" if text else ""
    await component.send(f"<message {written}>{body}{inner}</message>")


def body_of(message: Element) -> str:
    """The body of a message, empty if it has none."""
    return message.findtext(BODY) or ""
