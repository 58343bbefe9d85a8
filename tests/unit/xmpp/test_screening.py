"""What a stanza shows before it is parsed (xep-map 246)."""

import pytest

from smartfeeds.formats.crowds import CROWDED, TAG_ATTRIBUTES
from smartfeeds.xmpp.framer import StanzaFrame
from smartfeeds.xmpp.parsing import (
    ITEM_TOO_LARGE,
    REQUEST_BYTES,
    REQUEST_TAGS,
    REQUEST_TOO_LARGE,
    STANZA_TAGS,
    fault_of,
    sender_of,
)


@pytest.mark.parametrize(
    ("frame", "sender"),
    [
        (b"<iq type='get' from='alice@example.org/home' id='1'/>", b"alice@example.org"),
        (b'<message to="feeds" from="example.org"><body/></message>', b"example.org"),
        (b"<presence\n from\n=\t'a@b'/>", b"a@b"),
        (b"<iq id='1'><x from='eve@b'/></iq>", b""),
        (b"<iq/>", b""),
        (b"<iq id=' from=\"alice@b\" ' from='eve@b/x'/>", b"eve@b"),
        (b"<iq id=\" from='alice@b' \" xfrom='bob@b' x:from='c@b' from='eve@b/ from='/>", b"eve@b"),
        (b"<iq id='from=' from='eve@b'/>", b"eve@b"),
        (b"<iqx from='a@b'/>", None),
        (b"<stream:error from='a@b'/>", None),
        (b"<handshake/>", None),
    ],
)
def test_sender_is_the_bare_address_that_the_server_wrote(frame: bytes, sender: bytes | None) -> None:
    """No attribute value of a user passes for the address of somebody else."""
    assert sender_of(frame) == sender


def request(content: bytes, kind: bytes = b"set", attributes: bytes = b"") -> StanzaFrame:
    data = b"<iq id='1' type='%b'%b>%b</iq>" % (kind, attributes, content)
    return StanzaFrame(data, len(data))


PUBLISH = b"<pubsub xmlns='p'><publish node='n'><item>%b</item></publish></pubsub>"
CROWD = b" ".join(b"a%d='v'" % number for number in range(TAG_ATTRIBUTES + 1))


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (request(PUBLISH % b"t"), ""),
        (request(PUBLISH % (b"t" * (REQUEST_BYTES - 200))), ""),
        (request(PUBLISH % (b"t" * REQUEST_BYTES)), ITEM_TOO_LARGE),
        (request(b"<query>%b</query>" % (b"t" * REQUEST_BYTES), b"get"), REQUEST_TOO_LARGE),
        (request(b"<query>%b</query>" % (b"t" * REQUEST_BYTES), b"result"), ""),
        (request(b"<a></a>" * (REQUEST_TAGS // 2 - 1)), ""),
        (request(b"<a></a>" * (REQUEST_TAGS // 2)), "more than 8192 tags"),
        (request(b"<a></a>" * (REQUEST_TAGS // 2), b"result"), ""),
        (request(b"<a></a>" * (STANZA_TAGS // 2), b"result"), "more than 65536 tags"),
        (request(b"<a %b/>" % CROWD), CROWDED),
        (request(b"<a %b></a>" % CROWD.replace(b"'", b'"')), CROWDED),
        (request(b"<a %b/>" % CROWD, b"result"), CROWDED),
        (request(b"", attributes=b" " + CROWD), CROWDED),
        (request(b"<a b='c'/>" * TAG_ATTRIBUTES * 2), ""),
        (request(b"<a>%b</a>" % CROWD), ""),
    ],
)
def test_fault_is_told_from_the_bytes(frame: StanzaFrame, fault: str) -> None:
    assert fault_of(frame) == fault


def test_fault_size_follows_what_the_service_accepts() -> None:
    frame = request(PUBLISH % (b"t" * REQUEST_BYTES))

    assert fault_of(frame, 2 * REQUEST_BYTES) == ""
