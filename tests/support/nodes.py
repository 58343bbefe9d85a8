"""Questions about nodes and events that several test modules ask."""

from support.component import ALICE, NS, Component, Element, Refusal, refusal

NOT_FOUND = Refusal("cancel", "item-not-found")


async def exists(component: Component, node: str) -> bool:
    """Whether the node can be found."""
    answer = await component.get(ALICE, f"<items node='{node}'/>")
    assert answer.get("type") == "result" or refusal(answer) == NOT_FOUND
    return answer.get("type") == "result"


def event(message: Element) -> Element:
    """The event in a message."""
    child = message.find("ev:event", NS)
    assert child is not None
    return child
