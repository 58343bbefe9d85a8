"""Repairs the text of a feed that is not well-formed XML, before its tags are read.

Each row of `REPAIRS` repairs one kind of fault and has the note about it. `loader` tries them in their order, and
stops as soon as a strict parser accepts the document. All of them take a time that is linear in the text.
"""

import html.entities
import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from smartfeeds.core.text import FORBIDDEN

# Namespaces of fields of feeds, by their customary prefixes, for feeds that do not declare them.
FIELD_PREFIXES: Final = {
    "atom": "http://www.w3.org/2005/Atom",
    "atom10": "http://www.w3.org/2005/Atom",
    "a10": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "creativecommons": "http://backend.userland.com/creativeCommonsRssModule",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "rawvoice": "http://www.rawvoice.com/rawvoiceRssModule/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "source": "http://source.scripting.com/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "yandex": "http://news.yandex.ru",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
_OTHER_PREFIXES: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "xlink": "http://www.w3.org/1999/xlink",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
UNKNOWN_PREFIX: Final = "urn:x-smartfeeds:prefix:"
_MAX_PREFIXES: Final = 32
_MAX_DIGITS: Final = 7  # of the last character of Unicode

# A section without an end reaches to the end of the text, so that nothing is looked at twice.
_SECTION: Final = r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?(?:xml\s[^<>]*+>|.*?(?:\?>|\Z))"
DOCTYPE: Final = r"<!DOCTYPE(?:\s+(html)\b)?[^\[<>]*(?:\[[^\]<]*(?:<!(?:ENTITY|ELEMENT|ATTLIST)[^<>]*>[^\]<]*)*\]\s*)?>"
_HEAD: Final = re.compile(
    rf"{_SECTION}|(?P<doctype>{DOCTYPE})"
    r"|</?(?P<name>[A-Za-z_][\w.:-]{0,60})",
    re.DOTALL | re.IGNORECASE,
)
_ROOTS: Final = frozenset({"rss", "rdf", "feed", "opml", "channel"})
# HTML in which programs on the server write their warnings, or that a server puts into each page.
_MESSAGE_TAGS: Final = frozenset(
    {"br", "b", "i", "u", "p", "div", "span", "pre", "font", "table", "tbody", "tr", "th", "td", "a", "em", "strong"}
    | {"hr", "center", "script", "style", "noscript", "small", "code"}
)
_PROLOG: Final = re.compile(
    r"\s*(?:<\?xml\s+version\s*=\s*[\"'][0-9.]+[\"'](?:\s+encoding\s*=\s*[\"'][\w.:-]+[\"'])?"
    r"(?:\s+standalone\s*=\s*[\"'](?:yes|no)[\"'])?\s*\?>)?(?:\s+|<!--.*?-->|<!DOCTYPE[^\[<>]*>|<\?(?!xml\s).*?\?>)*",
    re.DOTALL,
)
_CHARACTER: Final = re.compile(
    rf"{_SECTION}|(?P<pair>&#(?:x(?P<h>d[89ab]..)|(?P<hd>5[56][0-9]{{3}}));&#(?:x(?P<l>d[c-f]..)|(?P<ld>5[67][0-9]{{3}}));)"
    r"|&#(?:x(?P<hex>[0-9a-f]++)|(?P<dec>[0-9]++))(?P<end>;?)",
    re.DOTALL | re.IGNORECASE,
)
_NAMED: Final = re.compile(rf"{_SECTION}|&(?P<name>[A-Za-z][A-Za-z0-9]{{1,31}})(?P<end>;|(?![=A-Za-z0-9]))", re.DOTALL)
_AMPERSAND: Final = re.compile(
    rf"{_SECTION}|&(?!#[0-9]{{1,9}};|#x[0-9A-Fa-f]{{1,9}};|(?P<name>[A-Za-z_][\w.-]*);)", re.DOTALL
)
_REFERENCE: Final = re.compile(rf"{_SECTION}|&(?P<name>[A-Za-z_][\w.-]{{0,60}});", re.DOTALL)
_DECLARED_ENTITY: Final = re.compile(r"<!ENTITY\s+([^\s%\"'<>&]+)")
_COMMENT: Final = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--(?P<comment>.*?)(?:-->|\Z)", re.DOTALL)
_CDATA_END: Final = re.compile(rf"{_SECTION}|\]\]>", re.DOTALL)
# What stands between marks of sections. A section in a section ends twice.
_PLAIN: Final = r"((?:(?!\]\]>|<!\[CDATA\[).)*)"
_NESTED: Final = re.compile(rf"<!\[CDATA\[{_PLAIN}<!\[CDATA\[{_PLAIN}\]\]>{_PLAIN}\]\]>", re.DOTALL)
_TAG: Final = re.compile(rf"{_SECTION}|<!|</?(?P<name>[^\s<>/!?\"'=]+)(?P<rest>[^<>]*)", re.DOTALL)
_PREFIXED: Final = re.compile(r"\s([A-Za-z_][\w.-]*):[^\s=:<>]+\s*=")
_DECLARED_PREFIX: Final = re.compile(r"""\sxmlns:([A-Za-z_][\w.-]*)\s*=\s*["']([^"'<>]*)["']""")
UNKNOWN_ENTITIES: Final = "references to entities that are not known were read as text"
_XML_NAMES: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})


class Repair(NamedTuple):
    """A kind of fault: its name, the note about it, and a function that returns the text without it, or None for a text
    that does not have it."""

    name: str
    note: str
    run: Callable[[str], str | None]


def feed_start(text: str) -> int:
    """Returns the offset at which the root element of a feed begins, or -1. Before it there may be messages of the
    server, but no page."""
    for match in _HEAD.finditer(text):
        if match["doctype"] is not None and match[2]:
            return -1
        if match["name"] is not None:
            name = match["name"].lower()
            if name.rpartition(":")[2] in _ROOTS and text[match.start() + 1] != "/":
                return match.start()
            if name not in _MESSAGE_TAGS:
                return -1
    return -1


def _without_lead(text: str) -> str | None:
    start = feed_start(text)
    if start <= 0 or ((prolog := _PROLOG.match(text)) is not None and prolog.end() >= start):
        return None
    doctype = next((match["doctype"] for match in _HEAD.finditer(text, 0, start) if match["doctype"]), "")
    return (doctype if "<!ENTITY" in doctype else "") + text[start:]


def _without_forbidden(text: str) -> str | None:
    return _changed(FORBIDDEN, "", text)


def _changed(pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str], text: str) -> str | None:
    changed = pattern.sub(replacement, text)
    return None if changed == text else changed


def _character(match: re.Match[str]) -> str:
    """A reference to a character that XML has; others are left out. The two halves of a pair are one character."""
    if match["pair"] is not None:
        high = int(match["h"], 16) if match["h"] else int(match["hd"])
        low = int(match["l"], 16) if match["l"] else int(match["ld"])
        if 0xD800 <= high < 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
        return ""
    if match["hex"] is None and match["dec"] is None:
        return match[0]
    digits = (match["hex"] or match["dec"]).lstrip("0")
    code = int(digits or "0", 16 if match["hex"] else 10) if len(digits) <= _MAX_DIGITS else 0
    if code >= 0x110000 or FORBIDDEN.search(chr(code)) is not None:
        return ""
    return match[0] if match["end"] and match[0][2] != "X" else f"&#{code};"


def _declared(text: str) -> frozenset[str]:
    """The names of entities that the document declares. They are in front of its root."""
    start = feed_start(text)
    return frozenset(_DECLARED_ENTITY.findall(text[: max(start, 0)])) | _XML_NAMES


def _html_names(text: str) -> str | None:
    return _changed(_NAMED, partial(_html_name, _declared(text)), text)


def _html_name(declared: frozenset[str], match: re.Match[str]) -> str:
    """A name of HTML as references. Without a semicolon only the old names count (HTML 13.5)."""
    name = match["name"]
    if name is None or (match["end"] and name in declared):
        return match[0]
    characters = html.entities.html5.get(name + match["end"])
    return match[0] if characters is None else "".join(f"&#{ord(c)};" for c in characters)


def _ampersands(text: str) -> str | None:
    return _changed(_AMPERSAND, lambda match: "&amp;" if match[0] == "&" else match[0], text)


def _unknown_names(text: str) -> str | None:
    declared = _declared(text)

    def as_text(match: re.Match[str]) -> str:
        return match[0] if match["name"] is None or match["name"] in declared else f"&amp;{match['name']};"

    return _changed(_REFERENCE, as_text, text)


def _comments(text: str) -> str | None:
    def comment(match: re.Match[str]) -> str:
        inside = match["comment"]
        is_wrong = inside is not None and match[0].endswith("-->") and ("--" in inside or inside.endswith("-"))
        return "" if is_wrong else match[0]

    return _changed(_COMMENT, comment, text)


def _cdata_ends(text: str) -> str | None:
    return _changed(_CDATA_END, lambda match: "]]&gt;" if match[0] == "]]>" else match[0], text)


def _prefixes(text: str) -> str | None:
    """Declares at the root the prefixes that are used without a declaration there."""
    root: re.Match[str] | None = None
    used: set[str] = set()
    declared: dict[str, str] = {}
    for match in _TAG.finditer(text):
        if match["name"] is None:
            continue
        names = {match["name"].partition(":")[0]} if ":" in match["name"].strip(":") else set[str]()
        names.update(_PREFIXED.findall(match["rest"]))
        for prefix, uri in _DECLARED_PREFIX.findall(match["rest"]):
            declared.setdefault(prefix, uri)
        root = match if root is None and match[0][1] != "/" else root
        used |= names
    if root is None:
        return None
    missing = used - {"xml", "xmlns"} - {prefix for prefix, _ in _DECLARED_PREFIX.findall(root["rest"])}
    if not missing:
        return None
    known = FIELD_PREFIXES | _OTHER_PREFIXES
    attributes = "".join(
        f' xmlns:{prefix}="{declared.get(prefix) or known.get(prefix.lower(), UNKNOWN_PREFIX + prefix)}"'
        for prefix in sorted(missing)[:_MAX_PREFIXES]
    )
    return text[: root.end("name")] + attributes + text[root.end("name") :]


# The order matters. Names of HTML come before ampersands, because "&nbsp" without a semicolon would become text.
# Nested sections come before section ends, because the end of the outer section would become text.
REPAIRS: Final = (
    Repair("lead", "what stands before the feed was skipped", _without_lead),
    Repair("characters", "characters that XML does not allow were left out", _without_forbidden),
    Repair(
        "references",
        "references to characters were repaired; those to characters that XML does not allow were left out",
        partial(_changed, _CHARACTER, _character),
    ),
    Repair("HTML names", "names of HTML characters were read although the document does not declare them", _html_names),
    Repair("ampersands", '"&" was read as a character where it begins no reference', _ampersands),
    Repair("entities", UNKNOWN_ENTITIES, _unknown_names),
    Repair("comments", "comments that XML does not allow were left out", _comments),
    Repair(
        "nested sections",
        "CDATA sections inside others were joined with them",
        partial(_changed, _NESTED, r"<![CDATA[\1\2\3]]>"),
    ),
    Repair("section ends", '"]]>" in a text was read as characters', _cdata_ends),
    Repair("prefixes", "namespace prefixes were read that the document does not declare", _prefixes),
)
