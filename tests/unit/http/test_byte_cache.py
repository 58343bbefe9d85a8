"""What is kept of what was made."""

from smartfeeds.http.byte_cache import ENTRY_BYTES, ByteCache


def test_kept_is_bounded_by_bytes_and_the_longest_unused_goes_first() -> None:
    kept: ByteCache[str, bytes] = ByteCache(3 * (ENTRY_BYTES + 100))
    for key in "abc":
        kept.put(key, key.encode(), 100)
    assert kept.get("a") == b"a"
    kept.put("d", b"d", 100)
    assert [kept.get(key) for key in "abcd"] == [b"a", None, b"c", b"d"]
    assert kept.size_bytes == 3 * (ENTRY_BYTES + 100)


def test_several_values_become_the_most_recently_used() -> None:
    kept: ByteCache[str, bytes] = ByteCache(3 * (ENTRY_BYTES + 100))
    for key in "abc":
        kept.put(key, key.encode(), 100)
    assert kept.get_all("axb") == [b"a", None, b"b"]
    kept.put("d", b"d", 100)
    assert kept.get_all("abcd") == [b"a", b"b", None, b"d"]


def test_kept_replaces_and_drops_with_their_bytes() -> None:
    kept: ByteCache[str, str] = ByteCache(10_000)
    kept.put("a", "long", 4_000)
    kept.put("a", "short", 10)
    assert (kept.get("a"), kept.size_bytes) == ("short", ENTRY_BYTES + 10)
    kept.drop("a")
    kept.drop("a")
    assert (len(kept), kept.size_bytes) == (0, 0)


def test_what_is_larger_than_all_room_is_not_kept() -> None:
    kept: ByteCache[str, str] = ByteCache(1_000)
    kept.put("a", "x", 5_000)
    assert (kept.get("a"), kept.size_bytes) == (None, 0)


def test_kept_drops_what_is_unwanted() -> None:
    kept: ByteCache[str, int] = ByteCache(10_000)
    for number, key in enumerate("abcd"):
        kept.put(key, number, 10)
    kept.drop_where(lambda number: number % 2 == 0)
    assert [kept.get(key) for key in "abcd"] == [None, 1, None, 3]
    assert kept.size_bytes == 2 * (ENTRY_BYTES + 10)
