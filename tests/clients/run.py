"""What is tried with each client: kinds of nodes, outcomes, and a run of one client with one node."""

from dataclasses import dataclass, field, replace
from typing import Any
from xml.sax.saxutils import escape

from clients.driver import Driver
from support.client import Client

PS = "http://jabber.org/protocol/pubsub"
FRIEND = "friend@localhost"
ATOM = "http://www.w3.org/2005/Atom"
NOTE = "urn:example:note"


class Wrong(Exception):  # noqa: N818
    """An operation had another result than it should."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of node: how applications configure it, and the payload of its items."""

    name: str
    payload: str
    template: str
    config: dict[str, str]
    options: dict[str, str]
    access_model: str = "open"


FEED = Kind(
    "feed",
    "atom",
    f"<entry xmlns='{ATOM}'><title>{{}}</title></entry>",
    {"title": "News", "access_model": "open", "persist_items": "true", "max_items": "max"},
    {"access_model": "open", "persist_items": "true", "max_items": "max"},
)
GENERIC = Kind(
    "generic",
    "note",
    f"<note xmlns='{NOTE}'>{{}}</note>",
    {"title": "Notes", "access_model": "open", "persist_items": "true", "max_items": "20"},
    {"access_model": "open", "persist_items": "true"},
)
SPACE = replace(GENERIC, template="<conference xmlns='urn:xmpp:bookmarks:1' name='{}'/>", access_model="authorize")
ATOM_NODE = replace(GENERIC, payload="atom", template=FEED.template)


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome of an operation."""

    outcome: str  # "yes", "missing": the client cannot, "wrong": the result is not as it should be
    reason: str = ""
    exchanges: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Run:
    """A client and a node of it."""

    client: Driver
    raw: Client  # the same account, for what the client cannot do
    friend: Client  # another user
    service: str
    node: str
    kind: Kind
    cells: dict[str, Cell] = field(default_factory=dict)

    async def call(self, name: str, **arguments: Any) -> Any:
        """A call of the client that names the node."""
        return await self.client.call(name, node=self.node, **arguments)

    async def publish(self, item: str, **more: Any) -> str:
        """Publishes with the client."""
        result: str = await self.call("publish", item_id=item, title=title_of(item), kind=self.kind.payload, **more)
        return result

    async def ids(self, **arguments: Any) -> list[str]:
        """Ids of items that the client retrieves; their titles are checked."""
        items = await self.call("items", **arguments)
        return self.checked(items)

    def checked(self, items: list[dict[str, str]]) -> list[str]:
        """The ids of items whose titles the client has read."""
        for item in items:
            expect(item["title"], title_of(item["id"]))
        return [item["id"] for item in items]

    async def set(self, body: str, namespace: str = PS) -> None:
        """Does without the client what later operations need."""
        await do(self.raw, self.service, body, namespace)

    async def prepare_node(self) -> None:
        """Creates the node, after deleting whatever has its name."""
        await self.raw.set(
            self.service,
            f"<pubsub xmlns='{PS}#owner'><delete node='{self.node}'/></pubsub>",
        )
        await self.create(self.raw, self.node)

    async def prepare_item(self, item: str) -> None:
        """Publishes without the client."""
        await self.put(self.raw, self.node, item)

    async def create(self, user: Client, node: str, **options: str) -> str:
        """Creates a node of the kind of the run as a user, with options. Returns its name."""
        fields = {"FORM_TYPE": f"{PS}#node_config", "{urn:smartfeeds:0}kind": self.kind.name}
        fields |= {f"pubsub#{name}": value for name, value in options.items()}
        form = "".join(f"<field var='{name}'><value>{value}</value></field>" for name, value in fields.items())
        configure = f"<configure><x xmlns='jabber:x:data' type='submit'>{form}</x></configure>"
        await do(user, self.service, f"<create node='{node}'/>{configure}")
        return node

    async def put(self, user: Client, node: str, item: str) -> None:
        """Publishes an item as a user."""
        payload = self.kind.template.format(escape(title_of(item)))
        await do(user, self.service, f"<publish node='{node}'><item id='{item}'>{payload}</item></publish>")


async def do(user: Client, service: str, body: str, namespace: str = PS) -> None:
    """Sends a pubsub request that changes something as a user."""
    answer = await user.set(service, f"<pubsub xmlns='{namespace}'>{body}</pubsub>")
    assert answer.get("type") == "result", body


def title_of(item: str) -> str:
    """The title that the test gives to an item."""
    return f"Title of {item} <&> ä"


def expect(result: object, expected: object) -> None:
    """Raises Wrong unless they are equal."""
    if result != expected:
        raise Wrong(f"{result!r} instead of {expected!r}")


def expect_in(part: object, whole: Any) -> None:
    """Raises Wrong unless the first is in the second."""
    if part not in whole:
        raise Wrong(f"{part!r} is not in {whole!r}")
