"""Origins of sites that may show a feed in a frame: what owners write, and what a policy may contain."""

import re

import pytest

from smartfeeds.core.frame_origins import MAX_ORIGINS, read_origin
from smartfeeds.core.options import NodeKind, NodeOptions, OptionLimits
from smartfeeds.errors import Condition, FeedError

# The grammar of a source that names a host (Content Security Policy Level 3, section 2.3.1).
_SOURCE = re.compile(r"https?://[a-z0-9\-]+(\.[a-z0-9\-]+)*(:[0-9]{1,5})?")


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://blog.example", "https://blog.example"),
        ("HTTPS://Blog.Example", "https://blog.example"),
        ("https://blog.example/", "https://blog.example"),
        ("  https://blog.example\n", "https://blog.example"),
        ("https://blog.example:443", "https://blog.example"),
        ("https://blog.example:0443/", "https://blog.example"),
        ("https://blog.example:8443", "https://blog.example:8443"),
        ("https://blog.example.", "https://blog.example"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://intranet", "https://intranet"),
        ("http://localhost", "http://localhost"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("https://127.0.0.1", "https://127.0.0.1"),
    ],
)
def test_origin_has_one_normal_form(text: str, origin: str) -> None:
    assert read_origin(text) == origin
    assert read_origin(origin) == origin
    assert _SOURCE.fullmatch(origin)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "blog.example", "//blog.example", "null", "*", "https:", "https://", "data:", "file:///tmp/a.html"),
        *(
            "https://*.blog.example",
            "https://*",
            "https:*",
            "'self'",
            "'none'",
            "about:blank",
            "blob:https://a.example",
        ),
        *("ftp://blog.example", "javascript:alert(1)", "xmpp:blog.example", "ws://blog.example"),
        *("http://blog.example", "http://192.168.0.1", "http://localhost.example", "http://127.0.0.2", "http://[::1]"),
        *("https://192.168.0.1", "https://[2001:db8::1]", "https://[::1]:8443", "https://3232235521", "https://0x7f.1"),
        *("https://1.2.3.4.", "https://blog.0x10"),
        *("https://blog.example/path", "https://blog.example//", "https://blog.example?", "https://blog.example/?a=b"),
        *("https://blog.example#", "https://blog.example/#a"),
        *("https://alice@blog.example", "https://alice:secret@blog.example", "https://@blog.example"),
        *("https://blog.example:", "https://blog.example:0", "https://blog.example:65536", "https://blog.example:x"),
        *("https://blog.example:-1", "https://blog.example:4_4", "https://blog.example:\u0664\u0664\u0663"),
        *("https://blog.example; script-src *", "https://blog.example;", "https://blog.example,https://b.example"),
        *("https://blog.example https://b.example", "https://blog.example\thttps://b.example", "https://a\nb.example"),
        *("https://blog.example\r\nSet-Cookie: a=b", "https://blog\u2028.example", "https://blog\u200b.example"),
        *("https://blog%2eexample", "https://blog_a.example", "https://-blog.example", "https://blog-.example"),
        *("https://.blog.example", "https://blog..example", "https://blog.example..", "https://blog.example\\evil"),
        *("https://blog.example'", 'https://blog.example"', "https://<blog.example>", "https://blog.example\u0000"),
        *(
            f"https://{'a' * 64}.example",
            f"https://{'a.' * 130}example",
            "https://" + "a" * 5_000,
            "https://[",
            "\ud800",
        ),
    ],
)
def test_text_that_is_no_origin_of_a_site_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="site"):
        read_origin(text)


def _applied(*values: str) -> NodeOptions:
    return NodeOptions(NodeKind.FEED).apply({"pubsub#frame_origins": values}, OptionLimits())


def test_option_lists_each_origin_once_and_an_empty_one_stores_nothing() -> None:
    options = _applied("https://b.example/", "", " ", "https://A.example", "https://b.example:443")

    assert options.frame_origins == ("https://b.example", "https://a.example")
    assert _applied().stored == _applied("").stored == {}
    assert NodeOptions(NodeKind.GENERIC).frame_origins == ()


@pytest.mark.parametrize(
    "values",
    [
        ("https://a.example", "http://b.example"),
        tuple(f"https://a{number}.example" for number in range(MAX_ORIGINS + 1)),
        ("https://a.example; script-src *",),
    ],
)
def test_option_with_a_wrong_origin_or_too_many_is_not_acceptable(values: tuple[str, ...]) -> None:
    with pytest.raises(FeedError) as failure:
        _applied(*values)

    assert failure.value.condition is Condition.NOT_ACCEPTABLE
    assert failure.value.text.startswith("pubsub#frame_origins: ")
