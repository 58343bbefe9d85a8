"""Makes the tags of a feed that is not well-formed match, without losing the items that are whole.

A parser that recovers by itself puts the second item into the first one if the first one lacks an end tag. This reader
knows which elements feeds consist of: an item ends the item before it, a field ends the field before it, and what is
unbalanced inside a text is the HTML of that text. Each character is looked at a bounded number of times.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

from smartfeeds.core.text import escape
from smartfeeds.formats.repairs import DOCTYPE, FIELD_PREFIXES, UNKNOWN_PREFIX

_LISTS: Final = frozenset({"rss", "rdf", "rdf:rdf", "channel", "feed", "opml", "body"})
_ITEMS: Final = frozenset({"item", "entry", "at:deleted-entry"})
_CONTAINERS: Final = _LISTS | _ITEMS | {"image", "textinput", "source", "head"}
# Elements whose text is HTML, or may be.
_TEXTS: Final = frozenset(
    {"title", "description", "content", "content:encoded", "summary", "subtitle", "tagline", "copyright", "rights"}
    | {"itunes:summary", "itunes:subtitle", "itunes:title", "media:description", "media:title", "dc:description"}
)
# Fields of channels and items. None of them is part of HTML, but for `title`, `link` and `summary`.
_FIELDS: Final = _TEXTS | {
    *("link", "guid", "pubdate", "lastbuilddate", "category", "enclosure", "author", "comments", "language", "ttl"),
    *("generator", "managingeditor", "webmaster", "docs", "cloud", "skiphours", "skipdays", "image", "textinput"),
    *("id", "updated", "published", "issued", "modified", "created", "contributor"),
}
# Fields that hold nothing but a short text.
_LEAVES: Final = frozenset(
    {
        "guid",
        "pubdate",
        "lastbuilddate",
        "comments",
        "language",
        "ttl",
        "generator",
        "managingeditor",
        "webmaster",
        "docs",
    }
    | {"id", "updated", "published", "issued", "modified", "created"}
)
_PREFIXES: Final = FIELD_PREFIXES.keys() - {"source"}  # which is an element of HTML and of RSS
_HTML: Final = frozenset(
    {"a", "abbr", "acronym", "address", "area", "article", "aside", "audio", "b", "base", "bdi", "bdo", "big"}
    | {"blockquote", "body", "br", "button", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del"}
    | {"details", "dfn", "dir", "div", "dl", "dt", "em", "embed", "fieldset", "figcaption", "figure", "font"}
    | {"footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html"}
    | {"i", "iframe", "img", "input", "ins", "kbd", "label", "legend", "li", "link", "main", "map", "mark"}
    | {"menu", "meta", "meter", "nav", "noscript", "object", "ol", "optgroup", "option", "p", "param", "picture"}
    | {"pre", "progress", "q", "s", "samp", "script", "section", "select", "small", "source", "span", "strike"}
    | {"strong", "style", "sub", "summary", "sup", "svg", "table", "tbody", "td", "template", "textarea", "tfoot"}
    | {"th", "thead", "time", "title", "tr", "track", "tt", "u", "ul", "var", "video", "wbr"}
)
_NAME: Final = re.compile(r"[A-Za-z_\u00c0-\U000effff][\w.\-\u00b7]*(?::[A-Za-z_\u00c0-\U000effff][\w.\-\u00b7]*)?")
_START: Final = re.compile(r"""<([A-Za-z_:\u00c0-\U000effff][^\s<>/"'=&]*)""")
_END: Final = re.compile(r"""</\s*+([^\s<>/"'=&]+)\s*+(?:>|(?=<)|\Z)""")
# Repeats are possessive, so that an attempt never goes back. A value has no "<" in it, so a tag ends at the next one.
_ATTRIBUTE: Final = re.compile(r"""[\s/]*+([^\s<>/"'=&]++)(?:\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)'|([^\s<>"']++)))?""")
_TAG_END: Final = re.compile(r"\s*+(/?)\s*+>")
_STRAY: Final = re.compile(r"""[\s/"'=&]++""")
_DOCTYPE: Final = re.compile(DOCTYPE, re.IGNORECASE)
_HTML_TAG: Final = re.compile(r"<(?=/?([A-Za-z][^\s<>/]*))")
_CDATA: Final = "<![CDATA["
_CDATA_PARTS: Final = re.compile(r"<!\[CDATA\[|\]\]>")

# What is wrong, and the note about it.
_NOTES: Final = {
    "unclosed": "elements without their end tag were ended where the next one begins",
    "markup": "HTML that is not well-formed was read as the text of its element",
    "stray": "end tags without their start tag were left out",
    "less": '"<" in a text was read as a character',
    "attribute": "attributes that are repeated, or have no quotes, were repaired",
    "name": "element names that XML does not allow were changed",
    "cdata": "CDATA sections without an end were ended where their element ends",
    "behind": "what comes after the end of the feed was left out",
    "cut": "the document ends in the middle; items that are whole were read",
}
_OTHER: Final = "markup that is not well-formed was repaired"


class Balanced(NamedTuple):
    """The document in which tags match, what was wrong, and whether its end is missing."""

    text: str
    notes: list[str]
    is_cut: bool


@dataclass(slots=True)
class _Open:
    """An element whose end tag has not come. `part` is the index of its start tag in the result, `begin` the place of
    its content in the document. `broken`: there is unbalanced markup in its text."""

    name: str
    key: str
    part: int
    begin: int
    broken: bool = False


def balanced(text: str) -> Balanced:
    """The document with an end tag for each start tag. Its root is the first element; without one it is empty."""
    balancer = _Balancer(text)
    balancer.run()
    notes = [note for kind, note in _NOTES.items() if balancer.faults[kind]] or [_OTHER]
    return Balanced("".join(balancer.parts), notes, bool(balancer.faults["cut"]))


class _Balancer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        self.faults: Counter[str] = Counter()
        self._stack: list[_Open] = []
        self._keys: Counter[str] = Counter()  # of the open elements, so that a stray end tag costs no walk
        # The outermost open element of `_TEXTS`.
        self._body: _Open | None = None
        self._is_ended = False
        # Where the next end of a kind is, so that a missing one is looked for once.
        self._ends: dict[str, int] = {}

    def run(self) -> None:
        place, size = 0, len(self.text)
        while place < size:
            begin = self.text.find("<", place)
            begin = size if begin < 0 else begin
            self._characters(self.text[place:begin])
            place = self._markup(begin) if begin < size else size
        if self._stack:
            self._cut()

    def _find(self, mark: str, place: int) -> int:
        """The next place of a mark, or -1."""
        known = self._ends.get(mark, 0)
        if 0 <= known < place:
            known = self._ends[mark] = self.text.find(mark, place)
        return known

    def _characters(self, text: str) -> None:
        if self._stack:
            self.parts.append(text.replace("]]>", "]]&gt;"))
        elif self._is_ended and text.strip(" \t\r\n\0"):
            self.faults["behind"] += 1

    def _less(self, place: int) -> int:
        """A "<" that begins no markup, or markup that is cut off."""
        if self._find(">", place) < 0:
            return len(self.text)
        if self._stack:
            self.parts.append("&lt;")
            self.faults["less"] += 1
        return place + 1

    def _markup(self, place: int) -> int:
        """Reads what begins with "<", and returns where it ends."""
        text = self.text
        if text.startswith(_CDATA, place):
            return self._cdata(place)
        for mark, close in (("<!--", "-->"), ("<?", "?>")):
            if text.startswith(mark, place):
                end = self._find(close, place + len(mark))
                return self._less(place) if end < 0 else end + len(close)
        if (doctype := _DOCTYPE.match(text, place)) is not None:
            if not self.parts and "<!ENTITY" in doctype[0]:
                self.parts.append(doctype[0])
            return doctype.end()
        if (end_tag := _END.match(text, place)) is not None:
            self._end(end_tag[1], place)
            return end_tag.end()
        if (start_tag := _START.match(text, place)) is not None:
            return self._start(start_tag[1], place, start_tag.end())
        return self._less(place)

    def _cdata(self, place: int) -> int:
        begin = place + len(_CDATA)
        end = self._find("]]>", begin)
        if not self._stack:
            return len(self.text) if end < 0 else end + 3
        # Another section that begins before the end, behind the end tag of the element: this one has no end.
        following = self._find(_CDATA, begin)
        limit = len(self.text) if end < 0 else following if 0 <= following < end else -1
        close = self.text.find(f"</{self._stack[-1].name}", begin, limit) if limit >= 0 else -1
        if close >= 0:
            self.faults["cdata"] += 1
            self.parts.append(f"{_CDATA}{self.text[begin:close]}]]>")
            return close
        if end < 0:
            return len(self.text)  # the rest is cut off
        self.parts.append(self.text[place : end + 3])
        return end + 3

    def _start(self, name: str, place: int, end: int) -> int:
        attributes: dict[str, str] = {}
        is_plain = True
        while (close := _TAG_END.match(self.text, end)) is None:
            match = _ATTRIBUTE.match(self.text, end)
            if match is None:
                stray = _STRAY.match(self.text, end)
                if stray is None:  # the tag is cut off, or it is none
                    return end if end == len(self.text) else self._less(place)
                is_plain, end = False, stray.end()
                continue
            end = match.end()
            attribute, double, single, bare = match.groups()
            is_name = _NAME.fullmatch(attribute) is not None
            is_quoted = double is not None or single is not None
            is_plain = is_plain and is_quoted and is_name and attribute not in attributes
            if is_name:
                value = next((value for value in (double, single, bare) if value is not None), attribute)
                attributes.setdefault(attribute, _namespace(attribute, value))
                is_plain = is_plain and attributes[attribute] == value
        if self._is_ended:
            self.faults["behind"] += 1
            return close.end()
        clean = _clean(name)
        if _NAME.fullmatch(clean) is None:
            return self._less(place)
        self.faults["name"] += clean != name
        self.faults["attribute"] += not is_plain
        self._open(clean, attributes, is_empty=bool(close[1]), place=place, end=close.end())
        return close.end()

    def _open(self, name: str, attributes: dict[str, str], *, is_empty: bool, place: int, end: int) -> None:
        key = name.lower()
        while self._body is None and self._stack and self._stack[-1].key in _LEAVES:
            self._pop(place)
        if key in _ITEMS or key == "channel":
            # An item ends everything up to the list that it is in; without an open list it ends nothing. A channel is
            # in no other channel, so a second one ends the first.
            lists = _LISTS - {"channel"} if key == "channel" else _LISTS
            while self._stack and self._stack[-1].key not in lists and not self._keys.keys().isdisjoint(lists):
                self._pop(place)
        elif key in _FIELDS or key.partition(":")[0] in _PREFIXES:
            if self._body is not None:
                self._pop_to(self._body, place)
            while ":" not in key and self._stack and self._stack[-1].key not in _CONTAINERS:
                self._pop(place)
        values = (f' {name}="{_quoted(value)}"' for name, value in attributes.items())
        tag = f"<{name}{''.join(values)}{'/' if is_empty else ''}>"
        if not is_empty:
            opened = _Open(name, key, len(self.parts), end)
            self._stack.append(opened)
            self._keys[key] += 1
            if self._body is None and key in _TEXTS:
                self._body = opened
        elif not self._stack:
            self._is_ended = True
        self.parts.append(tag)

    def _end(self, name: str, place: int) -> None:
        key = _clean(name).lower()
        if self._is_ended:
            self.faults["behind"] += 1
        elif not self._keys[key]:
            if self._body is not None and self._body is self._stack[-1] and key not in _HTML:
                self._pop(place)  # a misspelt end tag of the text
            elif self._body is not None:
                self._body.broken = True
            else:
                self.faults["stray"] += 1
        else:
            while self._stack[-1].key != key:
                self._pop(place)
            self._close(place)

    def _pop_to(self, element: _Open, place: int) -> None:
        """Ends all elements down to this one, which have no end tags."""
        while self._stack[-1] is not element:
            self._pop(place)
        self._pop(place)

    def _pop(self, place: int) -> None:
        """Ends the innermost element, which has no end tag."""
        if self._body is not None and self._stack[-1] is not self._body:
            self._body.broken = True
        else:
            self.faults["unclosed"] += 1
        self._close(place)

    def _close(self, place: int) -> None:
        element = self._stack.pop()
        self._keys[element.key] -= 1
        if not self._keys[element.key]:
            del self._keys[element.key]
        if element is self._body:
            self._body = None
            if element.broken:
                self.faults["markup"] += 1
                self._as_html(element, self.text[element.begin : place])
        self.parts.append(f"</{element.name}>")
        self._is_ended = not self._stack

    def _as_html(self, element: _Open, source: str) -> None:
        """Writes the content of an element as the HTML that its author meant."""
        del self.parts[element.part + 1 :]
        # What XML calls a text has the references that HTML has too.
        html = with_known_tags(_CDATA_PARTS.sub("", source))
        self.parts.append(escape(html))
        start = self.parts[element.part]
        if element.key in ("title", "summary", "content", "subtitle", "rights"):
            start = re.sub(r""" type="[^"]*\"""", "", start)
            self.parts[element.part] = f'{start[:-1]} type="html">'

    def _cut(self) -> None:
        """The end of the document is missing, and an item in which it ends is not whole."""
        self.faults["cut"] += 1
        item = next((element for element in self._stack if element.key in _ITEMS), None)
        if item is not None:
            del self.parts[item.part :]
            del self._stack[self._stack.index(item) :]
        self._body = None
        while self._stack:
            self.parts.append(f"</{self._stack.pop().name}>")


def with_known_tags(html: str) -> str:
    """The HTML in which a tag that HTML does not know is a text: "List<String>"."""
    return _HTML_TAG.sub(lambda tag: "<" if tag[1].lower() in _HTML else "&lt;", html)


def _namespace(attribute: str, value: str) -> str:
    """The value of an attribute; a namespace is a URI, and only that of a default namespace may be empty."""
    prefix = attribute.removeprefix("xmlns:")
    name = value.strip().replace(" ", "%20")
    if prefix == attribute:
        return name if attribute == "xmlns" else value
    return name or FIELD_PREFIXES.get(prefix.lower(), f"{UNKNOWN_PREFIX}{prefix}")


def _clean(name: str) -> str:
    """A name with one colon at most, which is not its first or last character."""
    prefix, colon, rest = name.strip(":").partition(":")
    return prefix + colon + rest.replace(":", "_")


def _quoted(value: str) -> str:
    return value.replace("<", "&lt;").replace('"', "&quot;")
