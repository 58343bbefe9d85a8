"""The faults of a document by the rules of its format: RFC 4287, RSS 2.0, JSON Feed 1.1, OPML 2.0.

Each checker returns the faults as texts, so that a test shows all of them. Elements and attributes of other namespaces
are nobody's fault: every one of the XML formats allows them.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lxml import etree

Element = etree._Element

A = "{http://www.w3.org/2005/Atom}"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S*")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_RFC822 = re.compile(rf"((Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d\d ({_MONTHS}) \d{{4}} \d\d:\d\d:\d\d (GMT|[+-]\d{{4}})")
_MEDIA_TYPE = re.compile(r"[^\s/]+/[^\s/]+.*")
_DAYS = frozenset({"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"})

# Element -> (the fewest, the most) of it in its parent.
_META = {"author": (0, None), "category": (0, None), "contributor": (0, None), "link": (0, None), "rights": (0, 1)}
_FEED = _META | {
    "id": (1, 1), "title": (1, 1), "updated": (1, 1), "subtitle": (0, 1), "generator": (0, 1), "icon": (0, 1),
    "logo": (0, 1), "entry": (0, None),
}  # fmt: skip
_ENTRY = _META | {
    "id": (1, 1), "title": (1, 1), "updated": (1, 1), "published": (0, 1), "content": (0, 1), "summary": (0, 1),
    "source": (0, 1),
}  # fmt: skip
_PERSON = {"name": (1, 1), "uri": (0, 1), "email": (0, 1)}
_ONCE_IN_CHANNEL = """
language copyright managingEditor webMaster pubDate lastBuildDate generator docs cloud ttl image rating textInput
skipHours skipDays
"""
_CHANNEL = dict.fromkeys(_ONCE_IN_CHANNEL.split(), (0, 1)) | {
    "title": (1, 1), "link": (1, 1), "description": (1, 1), "category": (0, None), "item": (0, None),
}  # fmt: skip
_ONCE_IN_ITEM = "title link description author comments guid pubDate source"
_ITEM = dict.fromkeys(_ONCE_IN_ITEM.split(), (0, 1)) | {"category": (0, None), "enclosure": (0, None)}
_CHANNEL_092 = {
    "title": (1, 1), "link": (1, 1), "description": (1, 1), "language": (0, 1), "lastBuildDate": (0, 1),
    "docs": (0, 1), "managingEditor": (0, 1), "webMaster": (0, 1), "cloud": (0, 1), "item": (0, None),
}  # fmt: skip
_ITEM_092 = {
    "title": (0, 1), "link": (0, 1), "description": (0, 1), "source": (0, 1), "enclosure": (0, None),
    "category": (0, None),
}  # fmt: skip
_OUTLINE = """
text type isComment isBreakpoint created category description htmlUrl language title version xmlUrl url
"""


def _counts(parent: Element, known: dict[str, tuple[int, int | None]], namespace: str = "") -> Iterator[str]:
    """Too few, too many and unknown children of a namespace."""
    where = etree.QName(parent).localname
    count = Counter(
        etree.QName(child).localname for child in parent.iterchildren("*") if _namespace(child) == namespace
    )
    for name, (low, high) in known.items():
        if not low <= count[name] <= (count[name] if high is None else high):
            yield f"{where}: {count[name]} {name}"
    yield from (f"{where}: unknown {name}" for name in count if name not in known)


def _namespace(element: Element) -> str:
    namespace = etree.QName(element).namespace
    return f"{{{namespace}}}" if namespace else ""


def _texts(parent: Element, names: Iterable[str], pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for name in names:
        for child in parent.iterchildren(name):
            if pattern.fullmatch((child.text or "").strip()) is None:
                yield f"{etree.QName(name).localname}: {child.text!r} is no {what}"


def atom_faults(data: bytes) -> list[str]:
    """The faults of a feed, or of an entry that stands alone (RFC 4287 4.1)."""
    root = etree.fromstring(data)
    if root.tag == f"{A}entry":
        return list(_entry(root, has_author=False))
    faults = [*_counts(root, _FEED, A), *_common(root)]
    has_author = root.find(f"{A}author") is not None
    for entry in root.iterchildren(f"{A}entry"):
        faults += _entry(entry, has_author=has_author)
    return faults


def _entry(entry: Element, *, has_author: bool) -> Iterator[str]:
    yield from _counts(entry, _ENTRY, A)
    yield from _common(entry)
    has_author = has_author or any(entry.find(path) is not None for path in (f"{A}author", f"{A}source/{A}author"))
    if not has_author:
        yield "entry: no author"
    content = entry.find(f"{A}content")
    alternates = [link for link in entry.iterchildren(f"{A}link") if link.get("rel", "alternate") == "alternate"]
    if content is None and not alternates:
        yield "entry: neither content nor alternate link"
    if content is not None:
        yield from _content(content, has_summary=entry.find(f"{A}summary") is not None)


def _content(content: Element, *, has_summary: bool) -> Iterator[str]:
    kind = content.get("type", "text")
    if content.get("src") is not None:
        if len(content) or (content.text or "").strip():
            yield "content: src and text"
        if kind in ("text", "html", "xhtml"):
            yield f"content: src with type {kind}"
    if kind not in ("text", "html", "xhtml") and _MEDIA_TYPE.fullmatch(kind) is None:
        yield f"content: type {kind!r}"
    is_text = kind in ("text", "html", "xhtml") or kind.startswith("text/") or kind.endswith(("+xml", "/xml"))
    if not has_summary and (content.get("src") is not None or not is_text):
        yield "entry: content needs a summary"
    if kind in ("text", "html", "xhtml") and content.get("src") is None:
        yield from _text(content)


def _text(text: Element) -> Iterator[str]:
    kind, name = text.get("type", "text"), etree.QName(text).localname
    if kind not in ("text", "html", "xhtml"):
        yield f"{name}: type {kind!r}"
    elif kind == "xhtml":
        if [child.tag for child in text] != ["{http://www.w3.org/1999/xhtml}div"]:
            yield f"{name}: XHTML without its div"
    elif len(text):
        yield f"{name}: elements in {kind}"


def _common(parent: Element) -> Iterator[str]:
    """The faults of the elements that feeds and entries share."""
    yield from _texts(parent, (f"{A}updated", f"{A}published"), _DATE_TIME, "date-time")
    yield from _texts(parent, (f"{A}id",), _URI, "IRI")
    for tag in ("title", "subtitle", "summary", "rights"):
        for text in parent.iterchildren(f"{A}{tag}"):
            yield from _text(text)
    for person in parent.iterchildren(f"{A}author", f"{A}contributor"):
        yield from _counts(person, _PERSON, A)
    for category in parent.iterchildren(f"{A}category"):
        if category.get("term") is None:
            yield "category: no term"
    seen: set[tuple[str, str]] = set()
    for link in parent.iterchildren(f"{A}link"):
        if link.get("href") is None:
            yield "link: no href"
        if link.get("rel", "alternate") == "alternate":
            key = link.get("type", ""), link.get("hreflang", "")
            if key in seen:
                yield "link: two alternates of one type and language"
            seen.add(key)


def rss_faults(data: bytes) -> list[str]:
    """The faults of a document by the RSS 2.0 specification."""
    root = etree.fromstring(data)
    faults = [] if (root.tag, root.get("version")) == ("rss", "2.0") else ["rss: not of version 2.0"]
    faults += _counts(root, {"channel": (1, 1)})
    for channel in root.iterchildren("channel"):
        faults += [*_counts(channel, _CHANNEL), *_channel(channel)]
        for item in channel.iterchildren("item"):
            faults += [*_counts(item, _ITEM), *_item(item)]
    return faults


def rss092_faults(data: bytes) -> list[str]:
    """The faults of a document by the RSS 0.92 specification: it has these elements and no others."""
    root = etree.fromstring(data)
    faults = [] if (root.tag, root.get("version")) == ("rss", "0.92") else ["rss: not of version 0.92"]
    foreign = [child.tag for child in root.iter("*") if _namespace(child)]
    faults += [f"rss: {tag}" for tag in foreign] + [*_counts(root, {"channel": (1, 1)})]
    for channel in root.iterchildren("channel"):
        faults += [*_counts(channel, _CHANNEL_092), *_channel(channel)]
        for item in channel.iterchildren("item"):
            faults += [*_counts(item, _ITEM_092), *_enclosures(item)]
            faults += [] if len(item) else ["item: empty"]
            faults += ["source: no url" for source in item.iterchildren("source") if not source.get("url")]
    return faults


def _channel(channel: Element) -> Iterator[str]:
    yield from _texts(channel, ("pubDate", "lastBuildDate"), _RFC822, "date")
    yield from _texts(channel, ("link",), _URI, "address")
    yield from _texts(channel, ("ttl",), re.compile(r"\d+"), "number")
    for image in channel.iterchildren("image"):
        yield from _counts(image, {"url": (1, 1), "title": (1, 1), "link": (1, 1)})
    for hours in channel.iterchildren("skipHours"):
        yield from _texts(hours, ("hour",), re.compile(r"\d|1\d|2[0-3]"), "hour")
    for days in channel.iterchildren("skipDays"):
        yield from (f"day: {day.text}" for day in days if day.text not in _DAYS)
    for cloud in channel.iterchildren("cloud"):
        missing = {"domain", "port", "path", "registerProcedure", "protocol"} - set(map(str, cloud.attrib))
        yield from (f"cloud: no {name}" for name in missing)


def _item(item: Element) -> Iterator[str]:
    if item.find("title") is None and item.find("description") is None:
        yield "item: neither title nor description"
    yield from _texts(item, ("pubDate",), _RFC822, "date")
    yield from _texts(item, ("link", "comments"), _URI, "address")
    yield from _enclosures(item)
    for guid in item.iterchildren("guid"):
        if guid.get("isPermaLink") != "false" and _URI.fullmatch(guid.text or "") is None:
            yield f"guid: {guid.text!r} is no address"
    yield from ("source: no url" for source in item.iterchildren("source") if not source.get("url"))
    yield from ("category: empty" for category in item.iterchildren("category") if not (category.text or "").strip())


def _enclosures(item: Element) -> Iterator[str]:
    for enclosure in item.iterchildren("enclosure"):
        if not (enclosure.get("length", "").isdigit() and _MEDIA_TYPE.fullmatch(enclosure.get("type", ""))):
            yield "enclosure: length or type"
        if not enclosure.get("url", "").startswith(("http://", "https://")):
            yield "enclosure: url"


def opml_faults(data: bytes) -> list[str]:
    """The faults of a document by the OPML 2.0 specification."""
    root = etree.fromstring(data)
    faults = [] if (root.tag, root.get("version")) == ("opml", "2.0") else ["opml: not of version 2.0"]
    faults += _counts(root, {"head": (1, 1), "body": (1, 1)})
    for head in root.iterchildren("head"):
        faults += _texts(head, ("dateCreated", "dateModified"), _RFC822, "date")
    faults += ["body: no outline" for body in root.iterchildren("body") if body.find("outline") is None]
    for outline in root.iter("outline"):
        names = {str(name) for name in outline.attrib if not str(name).startswith("{")}
        faults += [f"outline: attribute {name}" for name in names.difference(_OUTLINE.split())]
        needs = {"link": {"text", "url"}, "rss": {"text", "xmlUrl"}}.get(outline.get("type", ""), {"text"})
        faults += [f"outline: no {name}" for name in needs - names]
        created = outline.get("created")
        if created is not None and _RFC822.fullmatch(created) is None:
            faults.append(f"created: {created!r} is no date")
        faults += [f"outline: {child.tag}" for child in outline if child.tag != "outline" and not _namespace(child)]
    return faults


# Member -> whether a value will do.
_Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _URI.fullmatch(value) is not None


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE_TIME.fullmatch(value) is not None


def _is_author(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.keys() & {"name", "url", "avatar"})


def _is_attachment(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("url")) and bool(_MEDIA_TYPE.fullmatch(value["mime_type"]))


def _every(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


_JSON_FEED: dict[str, _Check] = {
    "version": lambda value: value == "https://jsonfeed.org/version/1.1", "title": _is_text,
    "home_page_url": _is_address, "feed_url": _is_address, "next_url": _is_address, "icon": _is_address,
    "authors": _every(_is_author), "items": _every(lambda value: isinstance(value, dict)),
}  # fmt: skip
_JSON_ITEM: dict[str, _Check] = {
    "id": lambda value: isinstance(value, str) and bool(value), "content_html": _is_text, "content_text": _is_text,
    "title": _is_text, "summary": _is_text, "date_published": _is_date, "date_modified": _is_date,
    "authors": _every(_is_author), "tags": _every(_is_text), "attachments": _every(_is_attachment),
}  # fmt: skip


def json_feed_faults(data: bytes) -> list[str]:
    """The faults of a document by the JSON Feed 1.1 specification."""
    feed = json.loads(data)
    faults = [f"feed: no {name}" for name in ("version", "title", "items") if name not in feed]
    faults += _members(feed, _JSON_FEED)
    for item in feed["items"]:
        faults += _members(item, _JSON_ITEM)
        if "id" not in item or not item.keys() & {"content_html", "content_text"}:
            faults.append(f"item: no id or content: {item}")
    return faults


def _members(value: dict[str, Any], checks: dict[str, _Check]) -> list[str]:
    return [f"{name}: {value[name]!r}" for name, check in checks.items() if name in value and not check(value[name])]
