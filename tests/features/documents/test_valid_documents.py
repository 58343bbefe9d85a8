"""Every document that leaves is valid in its format, whatever the entries hold; a document of ESS is well formed."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.errors import FeedError
from smartfeeds.features.documents.command import items_of
from smartfeeds.features.documents.ess import read_ess
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_details import head_of
from support.effort import runs
from support.entries import items
from support.routes import document
from support.validity import atom_faults, json_feed_faults, opml_faults, rss092_faults, rss_faults

CORPUS = Path(__file__).parents[2] / "corpus"
NOW_US = 1_700_000_000_000_000
MOST = 100
# What a document completes.
ADDED = {
    "entry: no author",
    "entry: neither content nor alternate link",
    "entry: content needs a summary",
}


COLLECTION = jsonschema.Draft202012Validator(
    {"$ref": "#/components/schemas/Collection", "components": document()["components"]},
    format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
)


def activity_faults(data):
    return [f"{error.json_path}: {error.message}" for error in COLLECTION.iter_errors(json.loads(data))]


def ess_faults(data):
    """No specification says more of ESS than its own reader checks: this is well-formedness, not validity."""
    read_ess(data)
    return []


CHECKS = {
    "atom": atom_faults,
    "rss": rss_faults,
    "rss092": rss092_faults,
    "opml": opml_faults,
    "jsonfeed": json_feed_faults,
    "json": activity_faults,
    "ess": ess_faults,
}


def faults_of(form, head, rows):
    """The faults of a document, but for those that entries of the feed had when they were published."""
    data = b"".join(FORMATS[form].write(FeedExport(head, rows, NOW_US)))
    own = {fault for row in rows for fault in atom_faults(row.payload)} - ADDED if form == "atom" else set()
    if form == "rss":
        own = {f"item: unknown {name}" for name in ("PhotoDate", "Comments", "tags")}  # made up by feeds of the corpus
    return [fault for fault in CHECKS[form](data) if fault not in own]


@cache
def corpus():
    """All documents of the corpus that can be read, as a conversion takes them. One has 4,000 items of one make, the
    others 399 in all: 100 of a document are enough.
    """
    found = []
    for path in sorted([*(CORPUS / "data").iterdir(), *(CORPUS / "data-own").iterdir()]):
        try:
            document = read_document(path.read_bytes(), "http://source.example/feed")
        except FeedError:
            continue
        rows = items_of(document)[:MOST]
        head = head_of(document, max((row.modified_us for row in rows), default=0))
        found.append((path.name, replace(head, self_link=head.self_link or "http://source.example/feed"), rows))
    return found


def test_every_format_has_a_check():
    assert set(CHECKS) == set(FORMATS)


@pytest.mark.parametrize("form", CHECKS)
def test_documents_of_the_corpus_are_valid_in_every_format(form):
    """[RSS-001] [RSS-003] [RSS-011] [A-35] No fault that was not in the source."""
    faults = {name: found for name, head, rows in corpus() if (found := faults_of(form, head, rows))}
    assert faults == {}


HEAD = FeedHead("urn:x-test:f", "T", 0, "http://x.example/feed", link="http://x.example/")


@pytest.mark.parametrize("form", CHECKS)
def test_documents_of_any_entries_are_valid_in_every_format(form):
    """[RSS-001] [RSS-003] [RSS-011] [A-35] Elements with children, attributes of other namespaces, several of each."""

    @given(st.integers(0, 2).flatmap(lambda count: st.tuples(*(items(number) for number in range(count)))))
    @settings(max_examples=runs(40))
    def check(rows):
        assert faults_of(form, HEAD, rows) == []

    check()
