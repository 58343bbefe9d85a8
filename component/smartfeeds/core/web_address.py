"""Web addresses of any server, as people and programs write them: reads, compares and escapes them (RFC 3986; SRC-014).

An address that is usable is requested as it was written. Only what no request could use is repaired. `urls` makes the
addresses of this service, `own_address` recognises them, `public_address` removes secrets, `formats.links` resolves
relative references.
"""

import re
from typing import Final
from unicodedata import normalize
from urllib.parse import SplitResult, quote, unquote, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Line breaks and tabs come with copied text (RFC 3986 appendix C), the others are invisible. ZWJ and ZWNJ are letters.
_INVISIBLE: Final = re.compile("[\t\r\n\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_JOINERS: Final = "\u200c\u200d"
_QUOTES: Final = {
    "<": ">",
    '"': '"',
    "'": "'",
    "`": "`",
    "(": ")",
    **dict(
        zip(
            "\u201c\u201e\u2018\u201a\u00ab\u00bb\u2039\u300c\u300e",
            "\u201d\u201c\u2019\u2018\u00bb\u00ab\u203a\u300d\u300f",
            strict=True,
        )
    ),
}
# The schemes by which readers, podcast programs and browsers pass on the address of a feed. "feed://host" is
# "http://host", and "feed:https://host" is "https://host" (draft-obasanjo-feed-uri-scheme-02). "URL:" is RFC 3986
# appendix C.
_WRAPPERS: Final = re.compile(
    r"(feeds?|rss|podcasts?|itpc|pcast|itms-pcasts?|web\+(?:feed|rss|podcast)|ext\+(?:feed|rss)|view-source|url):", re.I
)
_SECURE: Final = frozenset({"feeds", "podcasts", "itms-pcasts"})
# A scheme may be there twice, because it was in the field already. An input method of East Asia has a wide colon.
_WEB: Final = re.compile(r"(?:https?:?//)?(https?)(?:[:\uff1a]\s*[/\\]{0,2}|//)(?=[^/\\])\s*", re.I)
_ESCAPED_WEB: Final = re.compile(r"https?%3a", re.I)
_HOST_ALONE: Final = re.compile(
    r"(?P<host>[^\s/?#@:\[\]]+\.[^\s/?#@:\[\].]+|localhost|\[[0-9a-f:.]+\])\.?(?P<port>:[0-9]+)?(?:[/?#].*)?", re.I
)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.\-]*:(?:/|$|\D)|https?//", re.I)
_ESCAPED: Final = f" {_JOINERS}"
# The last label of an IP address is a number.
_NAME: Final = re.compile(r"[^\[].*\.[^.]*[^0-9.][^.]*")
_DOTS: Final = re.compile("[\u3002\uff0e\uff61]")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED_OR_RESERVED: Final = "-._~:/?#[]@!$&'()*+,;="
# Brackets are for IPv6 hosts only.
_VALID: Final = "-._~:/?#@!$&'()*+,;=%"
_URI: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~]+)(?::[0-9]*)?")
_PORT: Final = re.compile(r":[0-9]*\Z")
_BREAKS: Final = re.compile("[\t\r\n]")
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def read_address(text: str) -> str:
    """The http or https address that a text means, without its fragment, or "" if it means none.

    The text may have the scheme of a feed reader or no scheme, quotes or angle brackets, invisible characters, escaped
    ampersands and spaces. A host without a scheme means https, or http if it is an IP address or has another port.
    """
    text = _unwrapped(_INVISIBLE.sub("", text))
    web = _WEB.match(text)
    if web is not None:
        text = f"{web[1].lower()}://{text[web.end() :]}"
    elif text.startswith("//"):
        text = f"https:{text}"
    elif (match := _HOST_ALONE.fullmatch(text)) is not None:
        is_secure = match["port"] in (None, ":443") and _NAME.fullmatch(match["host"]) is not None
        text = f"{'https' if is_secure else 'http'}://{text}"
    text = text.partition("#")[0].replace("&amp;", "&").rstrip()
    place, question, query = text.partition("?")
    text = place.replace("\\", "/") + question + query  # as browsers do
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0 or not {*host}.isdisjoint(_ESCAPED):
        return ""
    for character in _ESCAPED:
        text = text.replace(character, quote(character))
    return text if text.isprintable() else ""


def _unwrapped(text: str) -> str:
    """The text without white space, quotes and wrapping schemes around it."""
    scheme = ""
    while True:
        before = text
        text = text.strip().strip(_JOINERS)
        if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
            text = text[1:-1]
        if _ESCAPED_WEB.match(text):
            text = unquote(text)
        wrapper = _WRAPPERS.match(text)
        if wrapper is not None:
            scheme = wrapper[1].lower()
            text = text[wrapper.end() :]
            inner = text.lstrip("/")
            text = unquote(inner) if _ESCAPED_WEB.match(inner) else inner if _WEB.match(inner) else text
        if text == before:
            break
    is_bare = scheme not in ("", "url", "view-source") and _SCHEME.match(text) is None
    return f"{'https' if scheme in _SECURE else 'http'}://{text.lstrip('/')}" if is_bare else text


def is_web(address: str) -> bool:
    """Returns whether an address is fetched over HTTP."""
    return address.lower().startswith(("http://", "https://"))


def address_key(url: str) -> str:
    """A text that is equal for the spellings of one address, and different for different addresses.

    http and https on their default ports have one key, because servers offer a feed at both. Otherwise RFC 3986
    sections 6.2.2 and 6.2.3 decide: the letters of the host, the default port, the spelling of escapes, an empty path
    and the fragment do not count. Path, query and a slash at the end do, since servers may compare them byte by byte.
    """
    try:
        parts = urlsplit(url.replace("&amp;", "&"))
        port = parts.port
    except ValueError:
        return url
    if not parts.hostname:
        return url
    place = "" if port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    query = f"?{normal_escapes(parts.query)}" if parts.query else ""
    return f"{ascii_host(parts)}{place}{normal_escapes(parts.path) or '/'}{query}"


def ascii_host(parts: SplitResult) -> str:
    """The host of an address in lower case, its labels as they are in the DNS (RFC 5890 section 2.3.2.1)."""
    host = _DOTS.sub(".", parts.hostname or "").removesuffix(".")
    if host.isascii():
        return host
    # IDNA 2003, which Python has, turns a German sharp s into two letters: the name of another host.
    labels = normalize("NFKC", host).lower().split(".")
    return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels)


def host_spellings(url: str) -> set[str]:
    """The names of the host of an address in ASCII and in Unicode, in lower case; none if it has no host.

    Databases make lower case of ASCII letters alone, so the Unicode name has a spelling with its other letters in upper
    case, too.
    """
    try:
        host = ascii_host(urlsplit(url))
    except ValueError:
        return set()
    labels = []
    for label in host.split("."):
        try:
            labels.append(label[4:].encode().decode("punycode") if label.startswith("xn--") else label)
        except UnicodeError:
            labels.append(label)
    name = ".".join(labels)
    return {host, name, "".join(letter if letter.isascii() else letter.upper() for letter in name)} - {""}


def normal_escapes(text: str) -> str:
    """The text with one spelling of escapes: only characters that need one have one (RFC 3986 section 6.2.2)."""
    plain = _ESCAPE.sub(lambda match: _escape_or_character(match[1]), text)
    return quote(plain, safe=f"{_UNRESERVED_OR_RESERVED}%", errors="surrogatepass")


def _escape_or_character(digits: str) -> str:
    character = unquote(f"%{digits}", errors="replace")
    unreserved = character.isascii() and (character.isalnum() or character in "-._~")
    return character if unreserved else f"%{digits.upper()}"


def uri_of(address: str) -> str:
    """The address as a URI: documents have only characters that RFC 3986 allows (RFC 3987 section 3.1).

    Whatever is valid stays, also escapes and what was escaped twice. Line breaks and tabs are left out, as browsers do.
    """
    if _URI.fullmatch(address) is not None:
        return address
    text = _BREAKS.sub("", address.strip())
    try:
        parts = urlsplit(text)
        netloc = parts.netloc
    except ValueError:  # brackets that are no host
        return _escaped(text)
    if not netloc:
        return _escaped(text)
    login, at, _ = netloc.rpartition("@")
    host = netloc[len(login + at) :]
    if not host.isascii() and parts.hostname:
        host = f"{ascii_host(parts)}{host[len(host.rpartition(':')[0]) :] if _PORT.search(host) else ''}"
    start = text.index("//") + 2
    host = host if _HOST.fullmatch(host) else _escaped(host)
    return f"{text[:start]}{_escaped(login)}{at}{host}{_escaped(text[start + len(netloc) :])}"


def _escaped(text: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", text), safe=_VALID, errors="surrogatepass")


def has_login(url: str) -> bool:
    """Whether an address has a name or a password."""
    return "@" in url.partition("://")[2].partition("/")[0]
