"""The one boundary to lxml: bytes to trees under limits, trees to canonical bytes (design section 3).

Canonical form is exclusive C14N 1.0 in UTF-8 without comments and processing instructions, with two additions so
that a payload means the same wherever its bytes are joined in (xep-map 144): a prefix that is used only in content
(`xsi:type="x:foo"`) keeps its declaration, and a root that declares no default namespace says so (`xmlns=""`) where
elements without a namespace are in it.
A payload with a DTD, entity definitions or too deep nesting is refused, never expanded (xep-map 246).
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, cast

from lxml import etree

from smartfeeds.core.text import escape, is_language_range
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.xml_names import parse_xml

Element = etree._Element

# libxml2 reads 256 levels; a payload travels inside the levels of a stanza and of whatever others wrap around it.
MAX_DEPTH = 128
# Distinct element and attribute names of one payload. Clients may keep every name that their parser has read.
MAX_NAMES = 256
MAX_NAME_BYTES = 256
# Parsers compare the attributes of an element with each other: a quadratic cost.
MAX_ATTRIBUTES = 128
# Each declared prefix is looked for in the content: a cost of prefixes times bytes.
MAX_PREFIXES = 64
# What nodes allow is a matter of pubsub#max_payload_size; this bounds the work of checking.
MAX_PAYLOAD_BYTES = 4 * 1024 * 1024

XML_NS = "http://www.w3.org/XML/1998/namespace"
XML_LANG = f"{{{XML_NS}}}lang"
XML_SPACE = f"{{{XML_NS}}}space"
XML_BASE = f"{{{XML_NS}}}base"

_PROCESSING_INSTRUCTION = re.compile(rb"<\?.*?\?>", re.DOTALL)
# libxml2 writes "<" and ">" in texts and attribute values as references, so this finds tags and nothing else.
_START_TAG = re.compile(rb"<[^<>/!?][^<>]*>")
_NAMESPACE = re.compile(rb'( xmlns(?::[^=\s]+)?=")([^"]+)"')
_PLAIN_URI = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*:(?!x-smartfeeds-veiled:)[A-Za-z0-9._~:/?#@!$'()*+,;=\-]*")
_VEIL = b"urn:x-smartfeeds-veiled:"
_RAW_NAME = re.compile(r"[^\s<>&\"'=/]+")
_PAIR = itemgetter(1)  # of an event of `iterwalk`: a prefix and a namespace name
_SURELY_SHORT = MAX_NAME_BYTES // 4  # characters, of at most four bytes
_ROOT_NAME = re.compile(rb"^<[^\s>]+")
# "</" begins an end tag and nothing else; `="` also ends the name of every attribute.
_LONG_TAG = re.compile(rb"</[^>]{%d}" % (MAX_NAME_BYTES + 1))
_LONG_ATTRIBUTE = re.compile(rb'="(?<=[^\s"<>=]{%d}=")' % (MAX_NAME_BYTES + 1))


# Of every parser: it opens nothing, loads no DTD, expands no entity and keeps libxml2's own limits.
STRICT_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


def strict_parser(encoding: str | None = None) -> etree.XMLParser:
    """A parser with `STRICT_OPTIONS`. `encoding` overrules what the document declares."""
    return etree.XMLParser(encoding=encoding, **STRICT_OPTIONS)


_PARSER = strict_parser()


def checked_name(name: str) -> str:
    """Returns the name of a tag or an attribute that was stored without markup, if it cannot change the markup around.

    A parser must read the result, because XML allows fewer names. Raises FeedError(INVALID_PAYLOAD).
    """
    if _RAW_NAME.fullmatch(name) is None:
        raise FeedError(Condition.INVALID_PAYLOAD, f"{name!r} is no name of XML")
    return name


def parse_payload(data: bytes) -> Element:
    """The root element of one payload. Raises FeedError(INVALID_PAYLOAD), also for any DTD (xep-map 246)."""
    if len(data) > MAX_PAYLOAD_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the payload is larger than {MAX_PAYLOAD_BYTES} bytes")
    try:
        root = parse_xml(data, _PARSER)
    except etree.XMLSyntaxError as error:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the payload {fault(error)}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload has a DTD, which is not allowed here")
    return root


def parse_stored(data: bytes) -> Element:
    """The root element of bytes that `canonical` made. Raises FeedError(INTERNAL) where they are not that."""
    try:
        return parse_xml(data, _PARSER)
    except etree.XMLSyntaxError:
        raise FeedError(Condition.INTERNAL, "a stored payload cannot be read") from None


_FAULTS = {
    etree.ErrorTypes.ERR_DOCUMENT_EMPTY: "is empty or begins with something that is no markup",
    etree.ErrorTypes.ERR_UNDECLARED_ENTITY: "uses an entity that it does not declare",
    etree.ErrorTypes.ERR_TAG_NAME_MISMATCH: "has a start tag and an end tag that do not match",
    etree.ErrorTypes.ERR_TAG_NOT_FINISHED: "ends in the middle",
    etree.ErrorTypes.ERR_INVALID_CHAR: "holds a character that XML does not allow",
    etree.ErrorTypes.ERR_INVALID_CHARREF: "refers to a character that XML does not allow",
    etree.ErrorTypes.ERR_INVALID_ENCODING: "holds bytes that its encoding does not have",
    etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING: "declares an encoding that is not known here",
    etree.ErrorTypes.ERR_UNKNOWN_ENCODING: "declares an encoding that is not known here",
    etree.ErrorTypes.ERR_ENTITY_LOOP: "has entities that contain themselves or grow without bound",
    etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE: "uses a namespace prefix that it does not declare",
    etree.ErrorTypes.ERR_RESERVED_XML_NAME: "has an XML declaration that is not at its very start",
    etree.ErrorTypes.ERR_DOCUMENT_END: "goes on after its end",
    etree.ErrorTypes.ERR_RESOURCE_LIMIT: "has a text or a tag that is larger than is read here",
}


def fault(error: etree.XMLSyntaxError) -> str:
    """Returns the error in a text and its place. The message of the parser is not used, because it quotes the text.

    Raises MemoryError if the parser got no memory.
    """
    code = getattr(error, "code", 0)
    # The code is that of the last error. Without memory it may be any of those that follow the first one.
    if error.error_log.filter_types([etree.ErrorTypes.ERR_NO_MEMORY]):  # type: ignore[attr-defined]
        raise MemoryError
    reason = _FAULTS.get(code, "is not well-formed XML")
    # libxml2 2.14 has one code for these two and for texts that are too long.
    if is_too_deep(error):
        reason = "is nested too deeply"
    elif "mplification" in str(error.msg):
        reason = _FAULTS[etree.ErrorTypes.ERR_ENTITY_LOOP]
    return f"{reason} (line {error.lineno})" if error.lineno else reason


def is_too_deep(error: etree.XMLSyntaxError) -> bool:
    """Whether a document has more levels than libxml2 reads. Only the message says so, with an upper or a lower D."""
    return "epth" in str(error.msg)


def document_error(error: etree.XMLSyntaxError) -> FeedError:
    """Returns the error for a document that the parser refused: FormatError for one that is no XML at all."""
    text = f"the document {fault(error)}"
    if getattr(error, "code", 0) == etree.ErrorTypes.ERR_DOCUMENT_EMPTY:
        return FormatError(text)
    return FeedError(Condition.INVALID_PAYLOAD, text)


def canonical(element: Element) -> bytes:
    """The canonical bytes of an element that our parser or the stream's made, its tail left out.

    Nothing of its ancestors is in it but namespaces: the xml:lang of a stanza belongs to the server that wrote it, and
    what an entry has from its feed is written into it by its reader.
    Raises FeedError(INVALID_PAYLOAD) for unexpanded entities, more than MAX_PREFIXES namespace prefixes and namespace
    names longer than MAX_NAME_BYTES.
    """
    namespaces = {*element.nsmap.items(), *map(_PAIR, etree.iterwalk(element, events=("start-ns",)))}
    # Exclusive form declares a namespace anew in each element that uses it, so a long name would multiply. Inclusive
    # form, which would not, takes a time that grows with elements times declarations.
    prefixes: set[str] = set()
    for prefix, uri in namespaces:
        if len(uri) > _SURELY_SHORT and len(uri.encode()) > MAX_NAME_BYTES:
            raise FeedError(Condition.INVALID_PAYLOAD, f"a namespace name is longer than {MAX_NAME_BYTES} bytes")
        if prefix:
            prefixes.add(prefix)
    try:
        return _canonical(element, prefixes)
    except etree.C14NError:
        return _canonical_veiled(element, prefixes)


def language_of(element: Element) -> str:
    """The language that an element declares itself, "" where it is none (RFC 5646 2.1)."""
    text = element.get(XML_LANG, "").strip()
    return text if is_language_range(text) else ""


def size_bytes(element: Element) -> int:
    """About how long an element is as XML, its tail left out."""
    return len(etree.tostring(element, encoding="utf-8", with_tail=False))


def _canonical(element: Element, prefixes: set[str]) -> bytes:
    """Returns the canonical bytes of an element in which these prefixes are declared."""
    data = etree.tostring(element, method="c14n", exclusive=True, with_comments=False)
    content_prefixes = _content_prefixes(element, data, prefixes)
    if content_prefixes:
        data = etree.tostring(
            element, method="c14n", exclusive=True, with_comments=False, inclusive_ns_prefixes=content_prefixes
        )
    if b"?" in data and b"<?" in data:  # most have neither, and one character is found more quickly than two
        data = _PROCESSING_INSTRUCTION.sub(b"", data)
    if (element.prefix or not element.tag.startswith("{")) and next(element.iter("{}*"), None) is not None:
        data = _ROOT_NAME.sub(rb'\g<0> xmlns=""', data, count=1)
    return data


def _canonical_veiled(element: Element, prefixes: set[str]) -> bytes:
    """Returns the canonical bytes of an element with namespace names that are no absolute URIs ("vcard-temp"), which
    libxml2's C14N refuses.

    Such a name is written as a URI for the call. The URI contains a hash of the element. Otherwise a text that looks
    like a veiled name would be replaced too, by markup of its author's choice.
    """
    data = etree.tostring(element, encoding="utf-8", with_tail=False)
    veil = _VEIL + hashlib.sha256(data).hexdigest().encode() + b":"
    veiled_data = _START_TAG.sub(lambda tag: _NAMESPACE.sub(partial(_veil, veil), tag[0]), data)
    try:
        data = _canonical(parse_xml(veiled_data, _PARSER), prefixes)
    except (etree.XMLSyntaxError, etree.C14NError):
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload has entities, which are not allowed here") from None
    data = re.sub(veil + rb'((?:[0-9a-f]{2})+)(?=")', lambda match: bytes.fromhex(match[1].decode()), data)
    # libxml2 forgets that a name is no URI ("a b") where a relative one follows, which canonical form may leave out.
    try:
        parse_xml(data, _PARSER)
    except etree.XMLSyntaxError:
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload has a namespace name that is no URI") from None
    return data


def _veil(veil: bytes, match: re.Match[bytes]) -> bytes:
    return match[0] if _PLAIN_URI.fullmatch(match[2]) else match[1] + veil + match[2].hex().encode() + b'"'


def _content_prefixes(element: Element, data: bytes, declared: set[str]) -> list[str]:
    """Returns the declared prefixes that occur in text or attribute values."""
    if len(declared) > MAX_PREFIXES:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the payload declares more than {MAX_PREFIXES} prefixes")
    # Few prefixes occur anywhere but at the beginning of tags. What is left is an attribute's name, a text or a value.
    suspects: list[str] = []
    for prefix in declared:
        use = f"{prefix}:".encode()
        if use in data and data.count(use) > data.count(b"<" + use) + data.count(b"</" + use):
            suspects.append(prefix)
    if not suspects:
        return []
    pattern = re.compile(rf"(?<![\w.\-])({'|'.join(map(re.escape, suspects))}):(?=\S)")
    return sorted({prefix for text in _texts(element) for prefix in pattern.findall(text)})


def _texts(element: Element) -> Iterable[str]:
    for node in element.iter(etree.Element):
        yield node.text or ""
        yield from (str(value) for value in node.attrib.values())
    for node in element.iter():
        if node is not element:
            yield node.tail or ""


def names_and_texts(root: Element) -> Iterator[tuple[object, ...]]:
    """All of a tree but its prefixes, in the order of the document. The number of children says where an element ends.

    What follows the root is not part of it.
    """
    for node in root.iter():
        tail = "" if node is root else node.tail or ""
        yield node.tag, sorted(node.attrib.items()), node.text or "", tail, len(node)


def check_limits(data: bytes, root: Callable[[], Element]) -> None:
    """Refuses a payload beyond the limits above. `root` gives its tree, which few payloads need for this.

    Raises FeedError(PAYLOAD_TOO_BIG) or FeedError(INVALID_PAYLOAD).
    """
    if len(data) > MAX_PAYLOAD_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the payload is larger than {MAX_PAYLOAD_BYTES} bytes")
    if _LONG_TAG.search(data) or _LONG_ATTRIBUTE.search(data):
        raise FeedError(Condition.INVALID_PAYLOAD, f"a name is longer than {MAX_NAME_BYTES} bytes")
    # With so few elements and attributes none of the other limits can be passed. Each element has two tags. "=" alone
    # is counted in half the time, and is rarely too frequent.
    if data.count(b"<") > 2 * MAX_DEPTH or (data.count(b"=") > MAX_ATTRIBUTES and data.count(b'="') > MAX_ATTRIBUTES):
        _check_closely(root())


def _check_closely(element: Element) -> None:
    depth = 0
    names: set[str] = set()
    level = [element]
    while level:
        depth += 1
        for node in level:
            names.add(node.tag)
            names.update(str(name) for name in node.attrib)
            if len(node.attrib) > MAX_ATTRIBUTES:
                raise FeedError(Condition.INVALID_PAYLOAD, f"an element has more than {MAX_ATTRIBUTES} attributes")
        level = [child for node in level for child in node.iterchildren(etree.Element)]
        if depth > MAX_DEPTH:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the payload is nested deeper than {MAX_DEPTH} levels")
        if len(names) > MAX_NAMES:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the payload uses more than {MAX_NAMES} distinct names")


def canonical_text(text: str) -> str:
    """Character data as canonical form writes it. Raises ForbiddenCharacterError."""
    return escape(text).replace("&#13;", "&#xD;")


def replace_by_text(node: Element, text: str) -> None:
    """Takes a node out of its tree and leaves `text` and its tail in its place."""
    parent = node.getparent()
    if parent is None:
        return
    text += node.tail or ""
    before = node.getprevious()
    node.tail = None
    parent.remove(node)
    if before is None:
        parent.text = (parent.text or "") + text
    else:
        before.tail = (before.tail or "") + text


def new_element(tag: str, namespaces: dict[str | None, str]) -> Element:
    """An element of our own; `namespaces` are prefix -> URI, None for the default."""
    return etree.Element(tag, nsmap=cast("Any", namespaces))
