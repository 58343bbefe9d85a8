"""Rules that choose enclosures before any request."""

import pytest

from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.enclosure_rules import parse_rule, parse_size
from smartfeeds.features.prefetch.enclosure import digest_of, judge
from support.prefetching import SETTINGS, changed

URL = "https://media.example.org/shows/episode-1.mp3"


def verdict(*rules: str, url: str = URL, media_type: str = "audio/mpeg", length: int | None = 5_000, **options: object):
    made = changed(SETTINGS, {"rules": rules, **options})
    return judge(made, (), url, media_type, length)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ((), False),
        (("yes",), True),
        (("yes type=audio/*",), True),
        (("yes type=AUDIO/mpeg",), True),
        (("yes type=audio/ogg",), False),
        (("yes type=video/*",), False),
        (("yes type=video/*", "yes type=audio/*"), True),
        (("no host=media.example.org", "yes"), False),
        (("no host=*.example.net", "yes"), True),
        (("no host=*.example.org", "yes"), False),
        (("yes host=example.org",), False),
        (("yes max=5000",), True),
        (("yes max=4999",), False),
        (("no max=5000", "yes"), False),
        (("no word=EPISODE", "yes"), False),
        (("yes type=audio/* host=media.* max=1MB word=shows",), True),
        (("yes type=audio/* host=media.* max=1MB word=trailer",), False),
    ],
)
def test_first_rule_that_applies_decides(rules: tuple[str, ...], allowed: bool) -> None:
    """[PRE-010] [PRE-011] [RSS-034] Without one the answer is no."""
    assert (verdict(*rules).refusal == "") is allowed


def test_rules_of_a_source_replace_those_of_the_service() -> None:
    """[PRE-011]"""
    own = (parse_rule("yes type=video/*"),)
    assert judge(SETTINGS, own, URL, "audio/mpeg", 1).refusal == "no rule allows it"
    assert judge(SETTINGS, own, URL, "video/mp4", 1).refusal == ""


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h.example/a.mp3",
        "magnet:?xt=urn:btih:1",
        "data:audio/mpeg,x",
        "/a.mp3",
        "https://",
        "http://h.example:x/a",
    ],
)
def test_only_addresses_on_the_web_are_loaded(url: str) -> None:
    """[PRE-012] [A-126]"""
    assert verdict("yes", url=url).refusal == "its address is not on the web"


def test_address_with_a_password_is_refused() -> None:
    """[PRE-012] Lists and logs would show it."""
    assert verdict("yes", url="https://user:secret@h.example/a.mp3").refusal == "its address has a name or password"


@pytest.mark.parametrize(
    ("url", "unknown_type", "refusal"),
    [
        ("https://h.example/a.mp3", False, ""),
        ("https://h.example/a.MP3?x=1.pdf", False, ""),
        ("https://h.example/a.pdf", False, "no rule allows it"),
        ("https://h.example/a", False, "its type is unknown"),
        ("https://h.example/a", True, ""),
        ("https://h.example/a.pdf", True, "no rule allows it"),
    ],
)
def test_missing_type_is_guessed_from_the_path(url: str, unknown_type: bool, refusal: str) -> None:
    """[PRE-013] [A-128] A type that stays unknown has a switch of its own."""
    assert verdict("yes type=audio/*", url=url, media_type="", unknown_type=unknown_type).refusal == refusal


def test_unknown_length_has_a_switch() -> None:
    """[PRE-014] [A-128] PD-6: it is then loaded with the limit."""
    assert verdict("yes max=2000", length=None).max_bytes == 2_000
    assert verdict("yes", length=None).max_bytes == SETTINGS.file_bytes
    assert verdict("yes", length=None, unknown_length=False).refusal == "its length is unknown"
    assert verdict("no max=2000", "yes", length=None).refusal == ""


def test_length_above_the_limit_is_refused() -> None:
    """[PRE-014] [RSS-034]"""
    assert verdict("yes", length=1_000_000).max_bytes == 1_000_000
    assert verdict("yes", length=1_000_001).refusal == "it has 1000001 bytes; the limit is 1000000"


@pytest.mark.parametrize(
    "text", ["", "maybe", "yes type", "yes type=", "yes size=3", "yes max=3x", "yes type=a type=b"]
)
def test_rule_that_cannot_be_read_is_refused(text: str) -> None:
    """[PRE-011]"""
    with pytest.raises(ConfigError):
        parse_rule(text)


@pytest.mark.parametrize(("text", "size"), [("10", 10), ("5k", 5_000), ("10MB", 10_000_000), ("2g", 2_000_000_000)])
def test_sizes_have_units(text: str, size: int) -> None:
    """[PRE-014]"""
    assert parse_size(text) == size


def test_name_of_a_file_is_a_digest() -> None:
    """[PRE-029]"""
    names = {digest_of(url) for url in ("https://a.example/x.mp3", "https://b.example/x.mp3", "https://a.example/../x")}
    assert len(names) == 3 and all(len(name) == 64 and name.isalnum() for name in names)
