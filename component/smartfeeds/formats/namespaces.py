"""The namespaces of feeds as programs misspell them: https for http, a slash or "#" too many or too few, another case,
drafts of Atom, and none at all. Well-known names take their place, so that all readers compare exact names."""

import re
from functools import partial
from typing import Final

from lxml import etree

from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.rss_channel import RSS_NAMESPACES, rss_name
from smartfeeds.formats.xml import Element, strict_parser
from smartfeeds.xml_names import parse_xml

ATOM03_NS: Final = "http://purl.org/atom/ns#"
RDF_NS: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMESPACE_NOTE: Final = "a namespace that is missing or misspelt was read as that of the format"
# Modules have their own table (`modules`), because their elements stay in the entry as they are.
_NAMES: Final = (
    *(ATOM_NS, ATOM03_NS, RDF_NS, *sorted(RSS_NAMESPACES - {""})),
    *("http://purl.org/rss/1.0/modules/content/", "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"),
)
# Those in which version 0.3 and the later drafts of Atom were written, such as draft-ietf-atompub-format-08.
_DRAFTS: Final = "purl.org/atom/ns"
_SCHEME: Final = re.compile(r"https?://(?:www\.)?")
# As lxml writes them.
_START_TAG: Final = re.compile(rb"""<[^\s<>/!?]++(?:\s[^\s=<>]++=(?:"[^"]*+"|'[^']*+'))*""")
_DECLARATION: Final = re.compile(rb'(\sxmlns(?::[^\s=]+)?=")([^"]*)"')
_ROOT_NAMESPACE: Final = re.compile(rb'(\A<[^\s<>/]+)(?: xmlns="[^"]*")?')


def _key(name: str) -> str:
    return _SCHEME.sub("", name.strip().lower(), count=1).rstrip("/#")


_BY_KEY: Final = {_key(name): name for name in _NAMES}


def with_known_namespaces(root: Element) -> Element | None:
    """The tree in which misspelt names of namespaces are well-known ones. None if there are none."""
    spellings = {name: known for name in _declared(root) if (known := _known(name)) != name}
    own = _own_namespace(root)
    if not spellings and own is None:
        return None
    data = etree.tostring(root, encoding="utf-8", with_tail=False)
    if own is not None:
        declaration = f' xmlns="{own}"'.encode() if own else b""
        data = _ROOT_NAMESPACE.sub(lambda match: match[1] + declaration, data, count=1)
    if spellings:
        encoded = {name.encode(): known.encode() for name, known in spellings.items()}
        replaced = partial(_DECLARATION.sub, lambda match: b'%b%b"' % (match[1], encoded.get(match[2], match[2])))
        data = _START_TAG.sub(lambda tag: replaced(tag[0]), data)
    try:
        return parse_xml(data, strict_parser("utf-8"))
    except etree.XMLSyntaxError:  # two spellings of one namespace, and an attribute in both
        return None


def _known(name: str) -> str:
    if name in _NAMES:
        return name
    key = _key(name)
    return ATOM03_NS if key.startswith(_DRAFTS) else _BY_KEY.get(key, name)


def _declared(root: Element) -> set[str]:
    """The namespaces of the elements of a document."""
    tags = {node.tag for node in root.iter(etree.Element)}
    return {tag[1:].partition("}")[0] for tag in tags if tag.startswith("{")}


def _own_namespace(root: Element) -> str | None:
    """The namespace that the root of a feed should have, if it has none or one that no format has.

    A feed shows by the names of its children what it is.
    """
    namespace, _, name = root.tag.removeprefix("{").rpartition("}")
    prefix = f"{{{namespace}}}" if namespace else ""
    if name == "feed" and not namespace and root.find("entry") is not None:
        return ATOM_NS
    is_foreign = name.lower() == "rss" and not rss_name(root) and root.prefix is None
    if is_foreign and _known(namespace) not in RSS_NAMESPACES and root.find(f"{prefix}channel") is not None:
        return ""
    return None
