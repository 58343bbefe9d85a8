"""The bases of requests and responses, and what several of them contain.

Every request carries `actor`, the full address of its sender, and `service`, the bare address that it was sent to
(SF-085). Node names and ids are texts as written, None if they were missing.
"""

from dataclasses import dataclass

from smartfeeds.core.jid import Jid


def local_part(service: str) -> str | None:
    """Returns the local part of a bare address, None if it is a domain."""
    return service.rpartition("@")[0] or None


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests."""

    actor: Jid
    service: str

    @property
    def turn(self) -> str:
        """The user on whose behalf the request runs; the store serves users in turn (`Store.read`)."""
        return self.actor.bare_text

    @property
    def address_node(self) -> str | None:
        """The node of a request that names none: the local part of the address, None at the domain (SF-085)."""
        return local_part(self.service)


@dataclass(frozen=True, slots=True)
class NodeRequest(Request):
    """The base of requests about one node, or a view of it."""

    node: str | None


class Answer:
    """The base of all responses."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class EmptyResult(Answer):
    """An empty result."""


@dataclass(frozen=True, slots=True)
class OrderBy:
    """An order of XEP-0413; `by` is "creation" or "modification", as written."""

    by: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ResultSet:
    """A response's result set: `first` and `last` are full UIDs (`cursor:...`), None on an empty page.

    `count` is None if counting would cost far more than the page. It is optional (XEP-0059 2.7).
    """

    count: int | None
    first: str | None = None
    last: str | None = None
    index: int | None = None

    def is_longer_than(self, entries: int) -> bool:
        """Whether the whole list may have more than so many entries."""
        return self.count is None or self.count > entries
