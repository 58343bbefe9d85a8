"""The feed of the demonstration."""

from importlib.resources import files

from smartfeeds.app.formats import read_document
from smartfeeds.formats import atom, xml
from smartfeeds.formats.payload import shape_of

DEMO = (files("smartfeeds") / "features" / "demo" / "planet.xml").read_bytes()


def metas(document):
    return [atom.read_meta(item.payload) for item in document.items]


def test_demo_feed_is_fit_to_be_shown():
    """Sixty dated, signed, sorted, tagged entries without a single remark of the reader."""
    document = read_document(DEMO)
    assert (document.title, len(document.items)) == ("Planet Tidemark", 60)
    assert (document.skipped, document.warnings) == ((), ())
    assert not any(item.warnings or item.deleted for item in document.items)
    assert list(reversed(document.items)) == document.oldest_first()
    found = metas(document)
    assert len({min(meta.authors) for meta in found}) == 7
    assert len({one for meta in found for one in meta.categories}) > 10
    assert all(meta.body and meta.text and meta.categories for meta in found)
    assert all(shape_of(xml.parse_payload(item.payload)).complete for item in document.items)
    answered = {one for meta in found for one in meta.replies_to if one.startswith("tag:")}
    assert answered
    assert answered <= {item.id for item in document.items}
