"""Users of the component who exchange presence with it."""

from xml.sax.saxutils import quoteattr

from support.component import DOMAIN, Component, bare

# Settings of a service that accepts the access model `presence`.
RESTRICTED = {"contacts": ["example.org"]}


async def tell(component: Component, user: str, kind: str = "", to: str = DOMAIN, inner: str = "") -> None:
    type_ = f" type='{kind}'" if kind else ""
    await component.send(f"<presence from={quoteattr(user)} to={quoteattr(to)}{type_}>{inner}</presence>")


async def told(component: Component, user: str) -> list[tuple[str, str]]:
    """The presence stanzas to a user since the last call: our address and the type."""
    await component.settle()
    mine = [each for each in component.presences if each.get("to") == bare(user)]
    component.presences = [each for each in component.presences if each not in mine]
    return [(str(each.get("from")), each.get("type", "")) for each in mine]


async def befriend(component: Component, user: str, to: str = DOMAIN) -> None:
    """Subscribes a user to our presence and grants our request."""
    await tell(component, bare(user), "subscribe", to)
    assert [kind for _, kind in await told(component, user)] == ["subscribed", "", "subscribe"]
    await tell(component, bare(user), "subscribed", to)
    assert await told(component, user) == []
