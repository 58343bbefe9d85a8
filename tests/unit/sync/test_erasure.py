"""The marks of an erasure: an erased version wins in every order, and a name that was erased does not come back."""

import itertools

import pytest

from smartfeeds.formats.atom import with_child
from smartfeeds.sync.erasure import erased_version, erases, is_erased, share_marks, without_author, without_erased
from smartfeeds.sync.feedsync import FEEDSYNC, clean_history
from smartfeeds.sync.merging import Dialect, merge, newer_of
from smartfeeds.sync.record import Edit, HistoryRecord, Version
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_sync
from support.sync import parse_item

A, B, C = "feeds.a%2Falice@a", "feeds.b%2Fbob@b", "feeds.c%2Fcarol@c"
SERVICE = "feeds.a"
S = 1_000_000
DIALECTS = (FEEDSYNC, SSE)


def payload(title: str) -> bytes:
    return f'<entry xmlns="http://www.w3.org/2005/Atom"><title>{title}</title></entry>'.encode()


def is_alice(text: str) -> bool:
    return "alice@a" in text


def edited(dialect: Dialect, version: Version, by: str, at_s: int, *, deleted: bool = False) -> Version:
    return dialect.update(version, Edit(at_s * S, by), payload(f"by {by}"), deleted=deleted)


def erased(version: Version) -> Version:
    return erased_version(without_author(version, is_alice, SERVICE), Edit(50 * S, SERVICE), payload(""))


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


@pytest.fixture
def shared(dialect: Dialect) -> Version:
    """An item by Alice that Bob has edited and Alice again."""
    first = dialect.create("i1", payload("first"), Edit(S, A))
    return edited(dialect, edited(dialect, first, B, 2), A, 3)


def text_of(version: Version, dialect: Dialect) -> str:
    return write_sync(version, dialect).decode()


def test_an_erased_version_has_numbers_and_no_name(dialect: Dialect, shared: Version) -> None:
    """[OPS-021] The history stays as numbers; content, names and conflicts are gone."""
    result = erased(shared)

    assert is_erased(result)
    assert "alice" not in text_of(result, dialect)
    assert [record.when_us for record in result.history] == [50 * S, 3 * S, 2 * S, S]
    assert result.counter == shared.counter + 1
    assert not result.conflicts


def test_the_marks_survive_writing_and_reading(dialect: Dialect, shared: Version) -> None:
    """[OPS-021] sf:erased on sx:sync is foreign markup, which other services preserve."""
    result = erased(shared)
    item = parse_item(with_child(result.payload, write_sync(result, dialect)))

    assert item is not None
    assert item.version == result
    assert ':erased="true"' in text_of(result, dialect)


def test_sequence_of_the_erasure_is_above_those_of_its_endpoint(shared: Version) -> None:
    """[OPS-021] A service whose sequence is ahead of the counter would otherwise seem to have an older record."""
    ahead = shared._replace(history=(HistoryRecord(9, 4 * S, SERVICE), *shared.history))

    assert erased(ahead).history[0].sequence == 10


def test_edit_after_the_erasure_has_no_mark(dialect: Dialect, shared: Version) -> None:
    after = edited(dialect, erased(shared), C, 55)

    assert erased(shared).extra.attributes != () == after.extra.attributes


@pytest.mark.parametrize("edits", [1, 2, 7])
def test_an_edit_in_flight_loses_in_both_orders(dialect: Dialect, shared: Version, edits: int) -> None:
    """[OPS-021] Whatever its counter, an edit that was made without the erasure leaves no content and no conflict."""
    flight = shared
    for number in range(edits):
        flight = edited(dialect, flight, B, 60 + number)
    result = erased(shared)

    assert merge(dialect, result, flight).version == result
    assert merge(dialect, flight, result).version == result
    assert newer_of(dialect, result, flight) is None


def test_three_services_in_a_ring_agree(dialect: Dialect, shared: Version) -> None:
    """[OPS-021] In every order of three exchanges: the erasure, an edit without it, and an edit after it."""
    flight = edited(dialect, edited(dialect, shared, B, 60), B, 61)
    after = edited(dialect, erased(shared), C, 55)
    results = set()
    for order in itertools.permutations((erased(shared), flight, after)):
        version = order[0]
        for other in order[1:]:
            version = merge(dialect, version, other).version
        results.add(version)

    (result,) = results
    assert result.payload == payload(f"by {C}")
    assert not result.conflicts
    assert "alice" not in text_of(result, dialect)
    assert not is_erased(result)


def test_a_conflict_with_the_erased_content_goes(shared: Version) -> None:
    flight = edited(FEEDSYNC, shared, B, 60)
    conflict = merge(FEEDSYNC, flight, edited(FEEDSYNC, shared, C, 61)).version
    assert conflict.conflicts

    assert merge(FEEDSYNC, erased(shared), conflict).version == erased(shared)
    assert without_erased(erased(shared), conflict) is None


def test_a_name_that_was_erased_does_not_come_back(shared: Version) -> None:
    """[OPS-023] The content stays with its author; the record of the erased person has no name anywhere."""
    present = edited(FEEDSYNC, shared, B, 4)
    nameless = without_author(present, is_alice, SERVICE)
    flight = edited(FEEDSYNC, present, C, 60)

    for order in itertools.permutations((nameless, present, flight)):
        version = order[0]
        for other in order[1:]:
            version = merge(FEEDSYNC, version, other).version
        assert "alice" not in text_of(version, FEEDSYNC)
        assert version.payload == payload(f"by {C}")
        assert not version.conflicts


def test_versions_without_marks_are_not_touched(shared: Version) -> None:
    other = edited(FEEDSYNC, shared, B, 9)

    assert share_marks(shared, other) == (shared, other)
    assert not erases(shared, other)


def test_a_long_history_keeps_the_record_of_the_erasure(shared: Version) -> None:
    """[OPS-021] Without the record, an edit that was made without the erasure would bring the content back."""
    version = edited(FEEDSYNC, erased(shared), SERVICE, 70)
    long = version._replace(history=clean_history(version.history))

    assert erases(long, shared)
