"""The encodings of documents, as polls read them."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.features.polling.reading import read_source
from smartfeeds.features.polling.source import new_source
from smartfeeds.formats import atom
from support.encodings import CASES


@pytest.mark.parametrize(("body", "charset", "text", "noted"), CASES.values(), ids=CASES.keys())
def test_a_poll_reads_what_an_import_reads(body: bytes, charset: str, text: str, noted: bool) -> None:
    polled = read_source(body, charset, "http://a.example/", new_source("n", "http://a.example/", 0))
    assert polled.feed.title == read_document(body, "", charset).title
    assert polled.items[0].item.payload.root.findtext(atom.TITLE) == text
    assert set(polled.feed.repairs) <= set(polled.notes)
