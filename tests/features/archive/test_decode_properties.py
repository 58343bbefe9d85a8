"""Whatever comes in gives a request, an answer or FeedError."""

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from property.test_decode import FIELDS, elements, from_wire
from smartfeeds.errors import FeedError
from smartfeeds.features.archive.stanzas import XMPP
from smartfeeds.service import requests as r
from smartfeeds.xmpp.stanza_errors import encode_error
from unit.xmpp.wire import ACTOR, SERVICE, parse


@given(st.sampled_from(sorted(XMPP.readers)), elements(), st.lists(elements(), max_size=3))
def test_archive_any_tree_gives_request_answer_or_feed_error(
    place: tuple[str, str], content: etree._Element, fields: list[etree._Element]
) -> None:
    """XEP-0313: queries with forms and result sets of any content."""
    _, content.tag = place
    form = etree.SubElement(content, FIELDS[0])
    for field in fields:
        field.tag = FIELDS[1]
        form.append(field)
    found = from_wire(content)

    try:
        answer = XMPP.readers[place](found, ACTOR, SERVICE)
    except FeedError as refused:
        parse(encode_error(refused))
    else:
        assert isinstance(answer, bytes | r.Request)
