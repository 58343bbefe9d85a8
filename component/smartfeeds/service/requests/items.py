"""Publishing, retracting and reading items (XEP-0060 6.5, 7)."""

from dataclasses import dataclass
from typing import NamedTuple

from smartfeeds.core.feed_files import FeedFile
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import FormFields
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import View
from smartfeeds.service.drafts import PayloadDraft
from smartfeeds.service.requests.base import Answer, NodeRequest, OrderBy, Request, ResultSet


@dataclass(frozen=True, slots=True)
class ItemPrecondition:
    """A precondition for the change of an item (RFC 9110 13.1).

    If `tags` are given, the tag of the item (`service.item_writes.item_tag`) must be one of them (If-Match). Otherwise
    the item must exist (If-Match: *) or, with `absent`, must not exist (If-None-Match: *). A deleted item does not
    exist.
    """

    tags: frozenset[str] | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Publish(NodeRequest):
    """Publishes an item (XEP-0060 7.1). `draft` None means an empty item; `options` are publish-options, None if
    absent.

    `may_create` is False if the sender's token does not allow it to create a missing node, or to change the kind of an
    empty feed.
    """

    item_id: str | None
    draft: PayloadDraft | None
    options: FormFields | None = None
    item_present: bool = True
    expected: ItemPrecondition | None = None
    may_create: bool = True


@dataclass(frozen=True, slots=True)
class Published(Answer):
    """The node name as written, and the id of the item.

    `tag` is the item's new tag for `ItemPrecondition.tags`, empty if the publish deleted the item. `created` is true if
    the item did not exist before.
    """

    node: str
    item_id: str
    tag: str = ""
    created: bool = False


@dataclass(frozen=True, slots=True)
class Retract(NodeRequest):
    """Retracts an item (XEP-0060 7.2)."""

    item_id: str | None
    notify: bool = False
    expected: ItemPrecondition | None = None


@dataclass(frozen=True, slots=True)
class Purge(NodeRequest):
    """Deletes all items of a node (XEP-0060 8.5). With `begins` the answer does not wait for a large node."""

    begins: bool = False


@dataclass(frozen=True, slots=True)
class PurgeBegun(Answer):
    """The first items of the node with this number are retracted. Background work retracts the others."""

    node_no: int


@dataclass(frozen=True, slots=True)
class Pull(NodeRequest):
    """Retrieves items of a node in pages and in order (XEP-0060 6.5, XEP-0059, XEP-0413). With `item_ids`, only these
    items."""

    item_ids: tuple[str, ...] = ()
    max_items: str | None = None
    page: ResultSetRequest | None = None
    order_by: tuple[OrderBy, ...] = ()


@dataclass(frozen=True, slots=True)
class PullFeed(Request):
    """A page for a document: with data about the feed, and with the information whether there is more.

    `node` is the exact name of the feed and `view` the query string of a view. Without `view` it is the Smart view in
    modified order; with `stock` it is the bare node. `known` are versions (see `FeedPage`) that
    the client has: if one of them is current, no items are read. With `both_sides` the response also says whether older
    items exist. `asker` is the network address of an anonymous reader. With `local` it has the enclosures that the
    service has loaded, with `outline` the result of the `[[nno]]` section that fills the node. `brief`: as in `Slice`.
    """

    node: str
    view: str = ""
    stock: bool = False
    page: ResultSetRequest | None = None
    known: frozenset[str] = frozenset()
    both_sides: bool = False
    asker: str = ""
    local: bool = False
    outline: bool = False
    brief: bool = False

    @property
    def turn(self) -> str:
        """The network address of an anonymous reader, else the actor."""
        return self.asker or self.actor.bare_text


@dataclass(frozen=True, slots=True)
class Page(Answer):
    """Items in the order of the response. `show_publisher` follows `pubsub#itemreply`."""

    node: str
    items: tuple[Item, ...]
    result_set: ResultSet | None
    show_publisher: bool


@dataclass(frozen=True, slots=True)
class GetItem(NodeRequest):
    """One item of a node or view; with `sync`, as a view with that parameter shows it. With `neighbours` the response
    has the items beside it, and the enclosures that the service has loaded."""

    item_id: str
    sync: bool = False
    neighbours: bool = False


class LocalFile(NamedTuple):
    """An enclosure of an item that the service has loaded from `url`."""

    item_id: str
    file_id: str
    url: str
    media_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FileShown(Answer):
    """A file of a feed. `public`: everybody may read the feed. `tag` identifies the bytes: another content has another
    tag."""

    file: FeedFile
    public: bool
    tag: str


@dataclass(frozen=True, slots=True)
class ItemShown(Answer):
    """An item or its tombstone, and its node. `show_publisher` follows `pubsub#itemreply`.

    `older` and `newer` are the items created right before and after it that are not deleted; None if there is none, or
    if the request has no `neighbours`.
    """

    item: Item
    node: Node
    show_publisher: bool
    older: Item | None = None
    newer: Item | None = None
    local_files: tuple[LocalFile, ...] = ()


class FeedOrigin(NamedTuple):
    """The address of a feed elsewhere, and its title if it is known."""

    address: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class FeedPage(Answer):
    """A page of a feed, ascending, with its node. `version` changes with everything that a page depends on.

    `page` is None if the client has it already. `newer` and `older` say whether the view has items behind and before
    the page; `older` is only set on request (`PullFeed.both_sides`), and `before_us` is then the ordering key of the
    item right before the page. `public` is true if everybody may read the feed. `origins` are the feeds elsewhere that
    fill the node, if the view has sync data (FeedSync 2.3.1). `local_files` and `outline`, an NNO file, are set
    on request (`PullFeed`); `outline` is empty if no `[[nno]]` section fills the node. `fails`: the feed is empty, and
    a feed elsewhere that fills it cannot be read at the moment.
    """

    node: Node
    view: View
    version: str
    public: bool
    page: Page | None = None
    newer: bool = False
    older: bool = False
    before_us: int | None = None
    origins: tuple[FeedOrigin, ...] = ()
    local_files: tuple[LocalFile, ...] = ()
    outline: bytes = b""
    fails: bool = False
