"""Spellings of web addresses: which are read, and which are one address."""

import pytest

from smartfeeds.core.web_address import address_key, host_spellings, read_address, uri_of

URL = "https://blog.example/feed"
HTTP = "http://blog.example/feed"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        # Usable addresses stay byte for byte (SRC-014).
        *((text, text) for text in (
            URL, HTTP, "https://Blog.Example/Feed", "https://blog.example", "https://blog.example:8443/a?b=%2f&c=+&d",
            "https://me:secret@blog.example/", "https://bücher.example/ä", "https://[2001:db8::1]/f", "http://a.example/x|y",
            "https://blog.example/feed.", "https://a.example/?u=https://b.example/&x=feed:y",
        )),
        # The schemes of feed readers.
        ("feed:https://blog.example/feed", URL),
        ("feed:http://blog.example/feed", HTTP),
        ("feed://blog.example/feed", HTTP),
        ("feed:blog.example/feed", HTTP),
        ("feed:///blog.example/feed", HTTP),
        ("feeds://blog.example/feed", URL),
        ("feed://https://blog.example/feed", URL),
        ("feed://https//blog.example/feed", URL),
        ("feed:feed:https://blog.example/feed", URL),
        ("FEED:HTTPS://blog.example/feed", URL),
        ("rss://blog.example/feed", HTTP),
        ("rss:https://blog.example/feed", URL),
        ("podcast://blog.example/feed", HTTP),
        ("itpc://blog.example/feed", HTTP),
        ("pcast:https://blog.example/feed", URL),
        ("itms-pcast://blog.example/feed", HTTP),
        ("itms-pcasts://blog.example/feed", URL),
        ("web+feed:https%3A%2F%2Fblog.example%2Ffeed", URL),
        ("ext+rss:https://blog.example/feed", URL),
        ("view-source:https://blog.example/feed", URL),
        # Text around it.
        ("  https://blog.example/feed\n", URL),
        ("\u00a0https://blog.example/feed\u3000", URL),
        ("<https://blog.example/feed>", URL),
        ("<URL:https://blog.example/feed>", URL),
        ('"https://blog.example/feed"', URL),
        ("'feed:https://blog.example/feed'", URL),
        ("\u201chttps://blog.example/feed\u201d", URL),
        ("(https://blog.example/feed)", URL),
        ("`https://blog.example/feed`", URL),
        ("https://blog.exam\nple/feed", URL),
        ("\ufeffhttps://blog.example/\u200bfeed\u200d", URL),
        ("\u2018https://blog.example/feed\u2019", URL),
        ("\u00bbhttps://blog.example/feed\u00ab", URL),
        ("\u300chttps://blog.example/feed\u300d", URL),
        # The scheme.
        ("https://https://blog.example/feed", URL),
        ("http://https//blog.example/feed", URL),
        ("https://http.example/feed", "https://http.example/feed"),
        ("https:// blog.example/feed", URL),
        ("https\uff1a//blog.example/feed", URL),
        ("https:\\\\blog.example\\feed", URL),
        ("https://blog.example/feed?x=\\", "https://blog.example/feed?x=\\"),
        ("https%3A%2F%2Fblog.example%2Ffeed", URL),
        ("podcasts://blog.example/feed", URL),
        ("HTTP://blog.example/feed", HTTP),
        ("https:/blog.example/feed", URL),
        ("https:blog.example/feed", URL),
        ("https:\\\\blog.example/feed", URL),
        ("https//blog.example/feed", URL),
        ("//blog.example/feed", URL),
        ("blog.example/feed", URL),
        ("blog.example", "https://blog.example"),
        ("bücher.example/feed", "https://bücher.example/feed"),
        ("blog.example:443/feed", "https://blog.example:443/feed"),
        ("blog.example:8080/feed", "http://blog.example:8080/feed"),
        ("192.0.2.7/feed", "http://192.0.2.7/feed"),
        ("localhost:8080/feed", "http://localhost:8080/feed"),
        ("[2001:db8::1]:8080/feed", "http://[2001:db8::1]:8080/feed"),
        ("blog.example?feed=rss2", "https://blog.example?feed=rss2"),
        # What no request can have.
        ("https://a.example/می\u200cشود", "https://a.example/می%E2%80%8Cشود"),
        ("https://blog.example/my feed", "https://blog.example/my%20feed"),
        ("https://blog.example/?a=1&amp;b=2", "https://blog.example/?a=1&b=2"),
        ("https://blog.example/feed#top", URL),
        # No addresses.
        *((text, "") for text in (
            "", "news", "a b", "https://", "https://a b/feed", "ftp://blog.example/feed", "mailto:me@blog.example",
            "me@blog.example", "xmpp:feeds.example?;node=x", "https://a\u200cb.example/", "feed:", "feed:feed:", "http://[",
            "javascript:alert(1)", "https:///blog.example/feed",
            "https://blog.example:x/", "https://blog.example:0/", "/feed", "file:///etc/passwd", "feed:file:///etc/passwd",
            "view-source:", "https://blog.example/\0",
        )),
    ],
)  # fmt: skip
def test_address_is_read_in_each_spelling(text, address):
    """[SRC-014] [SRC-048]"""
    assert read_address(text) == address
    if address:
        assert read_address(address) == address


SAME = [
    "https://blog.example/feed?x=%7Ea%2fb",
    "http://blog.example/feed?x=~a%2Fb",
    "https://blog.example:443/feed?x=~a%2Fb",
    "http://blog.example:80/feed?x=~a%2Fb",
    "HTTPS://Blog.Example/feed?x=~a%2Fb",
    "https://blog.example./feed?x=~a%2Fb#top",
    "https://blog.example/%66eed?x=~a%2Fb",
]


def test_spellings_of_one_address_have_one_key():
    """[SRC-037] RFC 3986 section 6.2; http and https are one feed."""
    assert len({address_key(url) for url in SAME}) == 1
    for one, other in (
        ("https://bücher.example/ä b", "https://xn--bcher-kva.EXAMPLE/%C3%A4%20b"),
        ("https://BÜCHER.example", "http://xn--bcher-kva.example/"),
        ("https://a。example/", "https://a.example"),
    ):
        assert address_key(one) == address_key(other)
    assert host_spellings("https://BÜCHER.example:80/") == {
        "xn--bcher-kva.example",
        "bücher.example",
        "bÜcher.example",
    }


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        *((text, text) for text in (
            "https://a.example/b?c=d&e=f+g#h", "https://a.example/a%20b", "https://a.example/a%2520b",
            "mailto:a@b.example",
            "https://a.example/a(b)'c*d!$,;=:@~-._", "https://[2001:db8::1]:8080/a", "", "a/b.mp3", "urn:x:y",
            "//a.example/b",
            "https://a.example/?u=https://b.example/%C3%A4", "xmpp:a@b.example?;node=c", "https://a.example/?a=1&amp;b=2",
        )),
        ("https://a.example/my song.mp3", "https://a.example/my%20song.mp3"),
        ("https://a.example/a|b", "https://a.example/a%7Cb"),
        ('https://a.example/"b"', "https://a.example/%22b%22"),
        ("https://a.example/<b>", "https://a.example/%3Cb%3E"),
        ("https://a.example/a\\b", "https://a.example/a%5Cb"),
        ("https://a.example/[b]?c[]=1", "https://a.example/%5Bb%5D?c%5B%5D=1"),
        ("https://[2001:db8::1]/[b]", "https://[2001:db8::1]/%5Bb%5D"),
        ("https://a.example/`{}^", "https://a.example/%60%7B%7D%5E"),
        ("https://a.example/für ä", "https://a.example/f%C3%BCr%20%C3%A4"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://BÜCHER.example:8080/ä", "https://xn--bcher-kva.example:8080/%C3%A4"),
        ("https://me:pä ss@bücher.example/", "https://me:p%C3%A4%20ss@xn--bcher-kva.example/"),
        ("https://a.example/100%", "https://a.example/100%25"),
        ("https://a.example/%zz%20%2", "https://a.example/%25zz%20%252"),
        ("https://a.example/a\n\tb", "https://a.example/ab"),
        (" https://a.example/a ", "https://a.example/a"),
        ("https://a.example/a\u00a0b\u2026", "https://a.example/a%C2%A0b%E2%80%A6"),
        ("https://a.example/\U0001f3b5", "https://a.example/%F0%9F%8E%B5"),
        ("https://a.example/?q=ä&r=a b#ö", "https://a.example/?q=%C3%A4&r=a%20b#%C3%B6"),
        ("https://s/ä", "https://s/%C3%A4"),
        ("//s/ä", "//s/%C3%A4"),
        ("a b.mp3", "a%20b.mp3"),
        ("magnet:?dn=a b", "magnet:?dn=a%20b"),
        ("http://[a b", "http://%5Ba%20b"),
    ],
)  # fmt: skip
def test_address_is_written_as_a_uri(address, uri):
    """[SRC-055] RFC 3986; what is valid stays."""
    assert uri_of(address) == uri
    assert uri_of(uri) == uri
