"""Payloads as they come in, from either wire: checked for form, and what of them is sync data (FeedSync 2.4; A-18)."""

from dataclasses import dataclass

from smartfeeds.core.model import MAX_SYNC_BYTES
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import has_author
from smartfeeds.formats.payload import Payload, Shape, accept_payload
from smartfeeds.formats.xml import Element, replace_by_text, size_bytes
from smartfeeds.sync.markup import SyncItem, is_whole, read_item, syncs_of

# Followers of a view would remove the item, and a client that copies items from a view would delete them.
LEFT_FAULT = "the entry has the mark of an item that has left a view (urn:smartfeeds:0 left): leave it out"


@dataclass(frozen=True, slots=True)
class PayloadDraft:
    """A payload to be published, checked for form.

    `payload` is what came, and `content` the same without sync data. `sync` is what whole sync data says, None where
    there is none. `fault` is the reason for which a feed cannot take the entry. `author` is the bare JID that becomes
    the author of an entry that names nobody, unless the node hides who publishes.
    """

    payload: Payload
    content: Payload
    sync: SyncItem | None = None
    fault: str = ""
    author: str = ""


def _no_payload() -> PayloadDraft:
    payload = Payload()
    payload.shape = Shape()
    return PayloadDraft(payload, payload)


NO_PAYLOAD = _no_payload()  # of an item of a notification-only node (XEP-0060 4.3)


def draft_of(root: Element, author: str = "") -> PayloadDraft:
    """The draft of an element, which may lose its sync data here. `author` is the bare JID to name as the author of an
    entry that names nobody, "" for nobody. An entry with sync data stays as it is.

    Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) beyond the limits of `formats.xml`.
    """
    payload = accept_payload(root)
    if payload.shape.left:
        return PayloadDraft(payload, payload, fault=LEFT_FAULT)
    syncs = syncs_of(root) if payload.shape.synced else []
    if syncs and any(map(is_whole, syncs)):
        # What is longer would be refused in the end, and to read it takes the time of others.
        if any(size_bytes(sync) > MAX_SYNC_BYTES for sync in syncs):
            return PayloadDraft(payload, payload, fault=f"its sync data is longer than {MAX_SYNC_BYTES} bytes")
        try:
            return PayloadDraft(payload, payload, sync=read_item(root))
        except FeedError as error:
            return PayloadDraft(payload, payload, fault=error.text)
    if not syncs:
        named = author if author and payload.shape.entry and not has_author(root) else ""
        return PayloadDraft(payload, payload, author=named)
    # A feed makes a tombstone of a deletion, and keeps nothing of what came.
    if payload.shape.deletion:
        return PayloadDraft(payload, payload)
    for sync in syncs:
        replace_by_text(sync, "")
    return PayloadDraft(payload, Payload.of(root))
