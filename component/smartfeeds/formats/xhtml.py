"""The XHTML of a text construct as HTML (RFC 4287 3.1.1.3).

Prefixes and namespaces go, addresses are resolved by xml:base, and no text becomes markup. The result is as harmless
as its author made it.
"""

from collections.abc import Iterable

from smartfeeds.core.text import attribute, escape
from smartfeeds.formats.links import rebase, resolve
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element

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
    """What is in the div of a text construct, as HTML; `base` is in force at the construct. A div that says more (a
    class, a language) stays."""
    inner = next(iter(node), None)
    beside = (node.text or "") + (inner.tail or "" if inner is not None else "")
    plain = inner is not None and inner.tag in (_DIV, "div") and set(inner.attrib) <= {XML_BASE}
    if inner is not None and plain and len(node) == 1 and not beside.strip():
        node, base = inner, rebase(base, inner.get(XML_BASE))
    parts = [escape(node.text or "")]
    _write_children(node, base, parts)
    return "".join(parts)


def _write_children(node: Element, base: str, parts: list[str]) -> None:
    for child in node:
        _write_markup(child, base, parts)
        if child.tail:
            parts.append(escape(child.tail))


def _write_markup(node: Element, base: str, parts: list[str]) -> None:
    """An element as HTML. An element of a foreign namespace keeps its prefix; without one only its content is left."""
    base = rebase(base, node.get(XML_BASE))
    namespace, _, name = node.tag.removeprefix("{").rpartition("}")
    known = namespace in _HTML_NAMESPACES
    if not known:
        name = f"{node.prefix}:{name}" if node.prefix else ""
    if name:
        parts.append(f"<{name}{''.join(_attributes(node, base))}>")
    text = node.text or ""
    # Inside of such an element "</" could end it; then the text stays escaped, which is harmless.
    raw = known and name in _RAW and "</" not in text and "<!--" not in text
    parts.append(text if raw else escape(text))
    _write_children(node, base, parts)
    if name and not (known and name in _VOID):
        parts.append(f"</{name}>")


def _attributes(node: Element, base: str) -> Iterable[str]:
    for key, value in node.attrib.items():
        namespace, _, name = str(key).removeprefix("{").rpartition("}")
        if base and namespace in ("", XLINK_NS) and name in _ADDRESSES:
            value = resolve(base, str(value))
        if key == XML_LANG:
            name = "lang"
        elif key == XML_BASE:
            continue
        elif namespace:
            # HTML parsers know xlink:href in SVG, and keep any other name with a colon as it is.
            prefix = next((prefix for prefix, uri in node.nsmap.items() if prefix and uri == namespace), "xml")
            name = f"xlink:{name}" if namespace == XLINK_NS else f"{prefix}:{name}"
        yield f' {name}="{attribute(str(value))}"'
