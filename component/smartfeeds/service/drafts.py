"""Payloads as they come in, from either wire: checked for form, and what of them is sync data (FeedSync 2.4; A-18)."""

from dataclasses import dataclass

from smartfeeds.core.model import MAX_SYNC_BYTES
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import Shape, accept_payload, is_left, shape_of
from smartfeeds.formats.xml import Element, canonical, replace_by_text, size_bytes
from smartfeeds.sync.markup import SyncItem, is_whole, read_item, syncs_of

# Followers of a view would remove the item; and who copies what a view shows would delete it.
LEFT_FAULT = "the entry has the mark of an item that has left a view (urn:smartfeeds:0 left): leave it out"


@dataclass(frozen=True, slots=True)
class Draft:
    """A payload that was checked for form: canonical bytes as it came, and what its root is (`formats.atom.Shape`).

    Of an entry with sync data that is whole, `sync` is what it says; `content` is its payload without any, empty where
    it has none. `fault` is why a feed cannot take the entry.
    """

    payload: bytes
    shape: Shape
    content: bytes = b""
    sync: SyncItem | None = None
    fault: str = ""


def draft_of(root: Element) -> Draft:
    """A payload that is to be published; `root` may lose its sync data over it.

    Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) beyond the limits of `formats.xml`.
    """
    payload, shape = accept_payload(root), shape_of(root)
    if shape.entry and is_left(root):
        return Draft(payload, shape, fault=LEFT_FAULT)
    syncs = syncs_of(root) if shape.entry else []
    if not syncs:
        return Draft(payload, shape)
    if any(map(is_whole, syncs)):
        # What is longer would be refused in the end, and to read it takes the time of others.
        if any(size_bytes(sync) > MAX_SYNC_BYTES for sync in syncs):
            return Draft(payload, shape, fault=f"its sync data is longer than {MAX_SYNC_BYTES} bytes")
        try:
            found = read_item(root)
        except FeedError as error:
            return Draft(payload, shape, fault=error.text)
        return Draft(payload, shape, sync=found)
    for sync in syncs:
        replace_by_text(sync, "")
    return Draft(payload, shape, canonical(root))
