"""Sanitises the HTML of entries for our pages (RFC 4287 8.1).

Only listed elements and attributes stay. A browser loads nothing from other hosts: `image` writes their pictures.
Headings are moved below those of the page, and skip no level (WCAG 2.2, technique G141). The Content-Security-Policy
of the page is a second line of defence.
"""

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from smartfeeds.features.pages.images import LINK_REL, ImageWriter, image_link
from smartfeeds.formats.entry import EntryText, TextKind

if TYPE_CHECKING:
    import nh3


class TextLimits(NamedTuple):
    """The size up to which a text is shown, and the level of its topmost headings. The time for deep nesting grows
    with its square."""

    characters: int
    tags: int
    heading: int

    def below(self, title: str) -> "TextLimits":
        """The limits for a text below this title. A page shows no heading for an empty title."""
        return self if title else self._replace(heading=2)


# In a page of many entries, which links to the whole entry: 8 ms in the worst case.
SHORT = TextLimits(65_536, 2_000, 3)
# In the page of an entry, more than most payloads can have: 0.4 s in the worst case, so it is made in a thread.
WHOLE = TextLimits(400_000, 10_000, 2)

_LINK_SCHEMES = frozenset({"http", "https", "mailto", "xmpp"})
_BLOCKS = (
    "blockquote dd details div dl dt figcaption figure h1 h2 h3 h4 h5 h6 hr li ol p pre summary ul "
    "caption col colgroup table tbody td tfoot th thead tr"
)
_PHRASES = (
    "a abbr b bdi bdo br cite code del dfn em i img ins kbd mark q rp rt ruby s samp small strong sub sup time u "
    "var wbr"
)
_TAGS = {*_BLOCKS.split(), *_PHRASES.split()}
# The text inside these elements is not for readers.
_SILENT = {
    "script", "style", "template", "noscript", "noembed", "noframes", "iframe", "object", "svg", "math", "title",
    "textarea", "select", "xmp", "plaintext", "audio", "video", "canvas",
}  # fmt: skip
_ATTRIBUTES = {
    "*": {"lang", "dir"},
    "a": {"href"},
    "abbr": {"title"},
    "img": {"src", "alt"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
_NUMBER = re.compile(r"-?[0-9]{1,4}")
_VALUES: Mapping[str, re.Pattern[str]] = {
    "lang": re.compile(r"[A-Za-z0-9\-]{1,35}"),
    "dir": re.compile(r"ltr|rtl|auto"),
    "start": _NUMBER,
    "colspan": re.compile(r"[0-9]{1,2}"),
    "rowspan": re.compile(r"[0-9]{1,2}"),
    "datetime": re.compile(r"[0-9A-Za-z:+.\- ]{1,40}"),
}
_PICTURE = re.compile(r"data:image/(?:png|gif|jpeg|webp|avif);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
# A tag as nh3 writes it: values are in double quotes, and every "<" begins a tag.
_TAG = re.compile(r'<(/?)([a-z0-9]+)((?: [a-z]+="[^"]*")*)>')
# These have no meaning without attributes, and coloured code has thousands of them.
_BARE = re.compile(r"</?(?:span|font)(?:\s[^<>\"']*+(?:\"[^\"<]*+\"[^<>\"']*+|'[^'<]*+'[^<>\"']*+)*+)?>", re.IGNORECASE)
_VALUE = re.compile(r' ([a-z]+)="([^"]*)"')
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


class CleanHtml(NamedTuple):
    """HTML for our pages, and whether it is only the beginning of the text."""

    html: str
    cut: bool


def clean(text: EntryText, image: ImageWriter = image_link, limits: TextLimits = SHORT) -> CleanHtml:
    """A text construct as harmless HTML; plain text keeps its lines and shows its addresses as links."""
    if text.kind is TextKind.TEXT:
        most = limits.characters
        return CleanHtml(_linked(text.value[:most].strip()), len(text.value) > most)
    value, cut = _beginning(text.value, limits)
    return CleanHtml(_TAG.sub(_Rewriter(image, limits.heading), _cleaner().clean(value)), cut)


def harmless_html(html: str) -> str:
    """HTML that is stored: without scripts and styles, and with its pictures."""
    return _cleaner().clean(html)


def _beginning(value: str, limits: TextLimits) -> tuple[str, bool]:
    """The beginning of HTML up to the limits, and whether it was cut."""
    # Tags without meaning do not count. The part that is searched for them is bounded, too.
    most = 4 * limits.characters
    bare = _BARE.sub("", value[:most])
    end = next((match.start() for match in islice(re.finditer("<", bare), limits.tags, None)), len(bare))
    end = min(end, limits.characters)
    return bare[:end], end < len(bare) or len(value) > most


def link_of(address: str) -> str:
    """The address if a link to it is harmless, else ""."""
    return address if _scheme(address) in _LINK_SCHEMES else ""


def _scheme(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts.scheme.lower() if parts.netloc or parts.scheme.lower() in ("mailto", "xmpp") else ""


def _attribute(_element: str, name: str, value: str) -> str | None:
    """The value that an attribute keeps, None to remove it. No value contains a "<" afterwards."""
    if name == "href" and value.lstrip().lower().startswith("data:"):
        return None
    if name == "src" and value.startswith("data:") and _PICTURE.fullmatch(value) is None:
        return None
    if name in ("href", "src"):
        return value.replace("<", "%3C").replace(">", "%3E")
    pattern = _VALUES.get(name)
    if pattern is not None:
        return value if pattern.fullmatch(value) else None
    return value.replace("<", "‹").replace(">", "›")


@cache
def _cleaner() -> "nh3.Cleaner":
    import nh3  # with the first text: services without readers keep its memory

    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags=_SILENT,
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={*_LINK_SCHEMES, "data"},
        link_rel=LINK_REL,
        # Relative addresses are removed: on our page they would be relative to the page.
        url_relative="deny",
    )


class _Rewriter:
    """Rewrites each tag in turn: moves headings, replaces pictures of other hosts, and makes what may be too wide for
    the page scroll by itself, also by the keyboard (WCAG 2.2, 2.1.1)."""

    def __init__(self, image: ImageWriter, heading: int) -> None:
        self._in_link = False
        self._image = image
        self._heading = heading
        self._above: list[str] = []  # the original names of the last heading and of those that it is below
        self._open: list[str] = []

    def __call__(self, match: re.Match[str]) -> str:
        end, name, values = match[1], match[2], match[3]
        if name == "a":
            self._in_link = not end
        elif name == "img":
            return self._picture(dict(_VALUE.findall(values)), match[0])
        elif name in _HEADINGS:
            return f"<{end}{self._open.pop() if end else self._level_of(name)}{values}>"
        elif name == "table":
            return "</table></div>" if end else f'<div class="wide" tabindex="0">{match[0]}'
        elif name == "pre" and not end:
            return f'<pre tabindex="0"{values}>'
        return match[0]

    def _level_of(self, name: str) -> str:
        """The element for a heading that begins: one level below the last heading above it in the text."""
        self._above = [each for each in self._above if each < name]
        level = f"h{min(self._heading + len(self._above), 6)}"
        self._above.append(name)
        self._open.append(level)
        return level

    def _picture(self, values: Mapping[str, str], tag: str) -> str:
        source = values.get("src", "")
        if source.startswith("data:"):
            return tag
        return self._image(source, values.get("alt", "").strip(), self._in_link)


_ADDRESS = re.compile(r"\b(?:https?://|xmpp:)[^\s<>\"'`{}|\\^]{3,2000}", re.IGNORECASE)


def _linked(text: str) -> str:
    parts: list[str] = []
    end = 0
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(".,;:!?]")
        # A bracket that was opened before the address ends it.
        if address.endswith(")") and "(" not in address:
            address = address[:-1].rstrip(".,;:!?]")
        parts.append(escape(text[end : match.start()]))
        end = match.start() + len(address)
        href = escape(quote(address, safe="!#$%&'()*+,/:;=?@[]~"))
        parts.append(f'<a href="{href}" rel="{LINK_REL}">{escape(address)}</a>')
    parts.append(escape(text[end:]))
    return "".join(parts).replace("\r\n", "\n").replace("\n", "<br>")
