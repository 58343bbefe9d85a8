"""The XHTML of a text construct as HTML (RFC 4287 3.1.1.3).

Prefixes and namespaces are removed, addresses are resolved by xml:base, and text never becomes markup. The result is
not sanitised.
"""

from collections.abc import Iterable

from smartfeeds.core.text import attribute, escape
from smartfeeds.formats.links import BoundedResolver, rebase
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element, size_bytes

XHTML_NS = "http://www.w3.org/1999/xhtml"

XLINK_NS = "http://www.w3.org/1999/xlink"
_DIV = f"{{{XHTML_NS}}}div"
# HTML knows these without namespaces and prefixes.
_HTML_NAMESPACES = frozenset({"", XHTML_NS, "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# An HTML parser reads no references inside of these.
_RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "noscript"})
_ADDRESSES = frozenset({"href", "src", "cite", "action", "data", "poster", "longdesc"})


def inner_html(node: Element, base: str) -> str:
    """Returns the content of the div of a text construct as HTML; `base` is in force at the construct. A div that says
    more (a class, a language) stays."""
    inner = next(iter(node), None)
    beside = (node.text or "") + (inner.tail or "" if inner is not None else "")
    plain = inner is not None and inner.tag in (_DIV, "div") and set(inner.attrib) <= {XML_BASE}
    if inner is not None and plain and len(node) == 1 and not beside.strip():
        node, base = inner, rebase(base, inner.get(XML_BASE))
    writer = _Writer(BoundedResolver(size_bytes(node)))
    writer.add_inside(node, base)
    return "".join(writer.parts)


class _Writer:
    """Makes HTML of one text construct, in `parts`. The recursion ends at the 256 levels that libxml2 reads."""

    def __init__(self, resolver: BoundedResolver) -> None:
        self.parts: list[str] = []
        self._resolver = resolver

    def add_inside(self, node: Element, base: str) -> None:
        """Writes the content of an element, with its text escaped."""
        self.parts.append(escape(node.text or ""))
        self._add_children(node, base)

    def _add_children(self, node: Element, base: str) -> None:
        for child in node:
            self._add_markup(child, base)
            if child.tail:
                self.parts.append(escape(child.tail))

    def _add_markup(self, node: Element, base: str) -> None:
        """An element as HTML. An element of a foreign namespace keeps its prefix; without one only its content is
        left."""
        base = rebase(base, node.get(XML_BASE))
        namespace, _, name = node.tag.removeprefix("{").rpartition("}")
        is_html = namespace in _HTML_NAMESPACES
        if not is_html:
            name = f"{node.prefix}:{name}" if node.prefix else ""
        if name:
            self.parts.append(f"<{name}{''.join(self._attributes(node, base))}>")
        text = node.text or ""
        # Inside of such an element "</" could end it; then the text stays escaped, which is harmless.
        raw = is_html and name in _RAW and "</" not in text and "<!--" not in text
        self.parts.append(text if raw else escape(text))
        self._add_children(node, base)
        if name and not (is_html and name in _VOID):
            self.parts.append(f"</{name}>")

    def _attributes(self, node: Element, base: str) -> Iterable[str]:
        for key, value in node.attrib.items():
            namespace, _, name = str(key).removeprefix("{").rpartition("}")
            if base and namespace in ("", XLINK_NS) and name in _ADDRESSES:
                value = self._resolver.resolve(base, str(value))
            if key == XML_LANG:
                name = "lang"
            elif key == XML_BASE:
                continue
            elif namespace:
                # HTML parsers know xlink:href in SVG, and keep any other name with a colon as it is.
                prefix = next((prefix for prefix, uri in node.nsmap.items() if prefix and uri == namespace), "xml")
                name = f"xlink:{name}" if namespace == XLINK_NS else f"{prefix}:{name}"
            yield f' {name}="{attribute(str(value))}"'
