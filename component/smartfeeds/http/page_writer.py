"""Pages for people: how a browser gets a feed, an entry, the list of feeds and an error. A feature writes them.

The kernel reads what a page shows, chooses the form of a response, and stores and sends it. A service without the
feature sends browsers what it sends programs.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Never, Protocol

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Node
from smartfeeds.formats.representation import Representation
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import PageAddress
from smartfeeds.http.http_errors import Problem
from smartfeeds.http.negotiation import HTML
from smartfeeds.http.replies import Reply
from smartfeeds.service.requests import FeedPage, ItemShown


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of the list, by name or by last change. `total` counts all feeds. A path is "" if there is no such
    page."""

    nodes: Sequence[Node]
    total: int
    next_path: str
    previous_path: str
    by_change: bool = False


class PageWriter(Protocol):
    """Writes pages.

    A frame is what a page depends on besides its content, such as the language and the rights of the reader. Pages with
    equal frames and equal content are equal, so a frame is a part of the key of a cache.
    """

    def offered(self, forms: tuple[Representation, ...]) -> tuple[Representation, ...]:
        """Returns those of the representations that the service has."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of every page."""

    @property
    def style_headers(self) -> Mapping[str, str]:
        """The headers of a document with a style sheet."""

    async def frame(self, call: HttpCall) -> Hashable:
        """Returns the frame for the sender of a request, which names a feed. Raises FeedError."""

    async def beside(self, actor: Jid, answer: FeedPage, place: PageAddress) -> object:
        """Returns what a page shows of the feed beside its items. It depends on nothing but the feed, because the page
        is stored with the version of the feed. Raises FeedError."""

    def feed(self, frame: Hashable, answer: FeedPage, place: PageAddress, beside: object) -> bytes:
        """Returns a page of a feed. Called in a thread."""

    async def entry(self, call: HttpCall, answer: ItemShown, *, public: bool) -> Reply:
        """Returns the page of an item, or of its tombstone, with an entity tag. `public`: it is for everybody. Raises
        FeedError."""

    async def feed_list(self, call: HttpCall, actor: Jid, page: ListPage) -> bytes:
        """Returns a page of the list of feeds that an actor may know of."""

    def problem(self, call: HttpCall, problem: Problem) -> Reply:
        """Returns an error as a page if the client prefers one, else the problem."""

    def style(self, call: HttpCall, form: Representation) -> str:
        """Returns the name of the style of a document that a browser shows to a person, "" for other clients."""

    def styled(self, document: bytes, site_url: str, style: str) -> bytes:
        """Returns a document with the style sheet of this name. Its media type is `negotiation.XML`."""


def _no_page(*_arguments: object, **_named: object) -> Never:
    raise AssertionError("HTML is not offered")


class NoPages:
    """The writer of a service without pages. HTML is not offered, so nothing asks for a page."""

    headers: Mapping[str, str] = MappingProxyType({})
    style_headers: Mapping[str, str] = MappingProxyType({})

    def offered(self, forms: tuple[Representation, ...]) -> tuple[Representation, ...]:
        """Returns all but HTML."""
        return tuple(form for form in forms if form is not HTML)

    def problem(self, _call: HttpCall, problem: Problem) -> Reply:
        """Returns the problem."""
        return problem

    def style(self, _call: HttpCall, _form: Representation) -> str:
        """Returns "": documents have no style."""
        return ""

    # Nothing calls these, because HTML is not offered and no document has a style.
    frame = beside = feed = entry = feed_list = styled = staticmethod(_no_page)
