"""The picture of the service in its card, as an avatar, and the mark of it in presence (XEP-0054, XEP-0084, XEP-0153).

Clients look for the picture of a contact in all three places. The service has no account, so it answers the requests
for its avatar itself. Nodes of these names may be stored here, too: Movim stores the pictures of communities in
`urn:xmpp:avatar:data`. So of that node only the item of the service is answered here.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping

from smartfeeds.core.feed_files import png_size
from smartfeeds.xmpp import namespaces as ns

METADATA, DATA = "urn:xmpp:avatar:metadata", "urn:xmpp:avatar:data"
_TYPE = "image/png"


def picture_id(picture: bytes) -> str:
    """Returns the id of a picture, by which clients recognise it: its SHA-1 (XEP-0084 section 4.1, XEP-0153)."""
    return hashlib.sha1(picture, usedforsecurity=False).hexdigest()


def card_photo(picture: bytes) -> str:
    """Returns the element of a picture in a card, empty without a picture."""
    if not picture:
        return ""
    return f"<PHOTO><TYPE>{_TYPE}</TYPE><BINVAL>{b64encode(picture).decode()}</BINVAL></PHOTO>"


def presence_mark(picture: bytes) -> str:
    """Returns the element by which presence announces the picture in the card, empty without a picture."""
    return f"<x xmlns='{ns.VCARD_UPDATE}'><photo>{picture_id(picture)}</photo></x>" if picture else ""


def avatar_answers(picture: bytes) -> Mapping[tuple[str, str], bytes]:
    """Returns the bodies of the responses to requests for the avatar, by the node and the id of the item; no id stands
    for all items."""
    if not picture:
        return {}
    name = picture_id(picture)
    width, height = png_size(picture)
    size = f"bytes='{len(picture)}' width='{width}' height='{height}'"
    info = f"<info id='{name}' type='{_TYPE}' {size}/>"
    metadata = _body(METADATA, name, f"<metadata xmlns='{METADATA}'>{info}</metadata>")
    data = _body(DATA, name, f"<data xmlns='{DATA}'>{b64encode(picture).decode()}</data>")
    return {(METADATA, ""): metadata, (METADATA, name): metadata, (DATA, name): data}


def _body(node: str, item_id: str, payload: str) -> bytes:
    items = f"<items node='{node}'><item id='{item_id}'>{payload}</item></items>"
    return f"<pubsub xmlns='{ns.PUBSUB}'>{items}</pubsub>".encode()
