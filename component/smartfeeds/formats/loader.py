"""Bytes of a whole document to a tree: encodings, harmless DTDs, and what is done about faults.

Whole documents come from the open web. A well-formed one is parsed once and never changed. The faults of any other
feed are repaired as far as they have a remedy, each with a note: first by `repairs`, then by `balancing`, and by
libxml2's own recovery as the last resort. A document that is no feed stays refused. Entities are never expanded by the
parser; a DTD is accepted when its entities are few, short and plain text. Nothing outside the document is opened.
"""

import html.entities
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from lxml import etree

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.balancing import balanced
from smartfeeds.formats.crowds import CrowdCheck
from smartfeeds.formats.encodings import in_utf8
from smartfeeds.formats.namespaces import NAMESPACE_NOTE, with_known_namespaces
from smartfeeds.formats.refusals import text_refusal
from smartfeeds.formats.repairs import REPAIRS, UNKNOWN_ENTITIES, feed_start
from smartfeeds.formats.xml import (
    STRICT_OPTIONS,
    Element,
    document_error,
    fault,
    is_too_deep,
    replace_by_text,
    strict_parser,
)
from smartfeeds.xml_names import parse_xml

# A tree takes several times its document in memory, and an import reads a document as a whole.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
# What a DTD may define: enough for "&company;", too little for growth.
MAX_ENTITIES = 64
MAX_ENTITY_CHARACTERS = 1024
MAX_ENTITY_USES = 10_000

# A repair takes up to 2 us for each byte.
MAX_REPAIRED_BYTES = 16 * 1024 * 1024
_LEADING_SPACE = re.compile(rb"\A(?:\xef\xbb\xbf|[\x20\t\r\n])+(?=<)")
# Numbers of windows-1252 in place of those of Unicode, which has invisible controls there: HTML reads them so, too
# (HTML 13.2.5.80). Five numbers are undefined, and stay controls.
_CONTROLS = re.compile(
    rb"&#(?:0*(1(?:28|3[0-9]|4[025-9]|5[0-689]))|x0*(8[02-9a-ce]|9[1-9a-cef]));"
    rb"|\xc2([\x80\x82-\x8c\x8e\x91-\x9c\x9e\x9f])",
    re.IGNORECASE,
)
# Faults that are attacks, or that no repair makes smaller.
_FINAL = frozenset({etree.ErrorTypes.ERR_ENTITY_LOOP, etree.ErrorTypes.ERR_RESOURCE_LIMIT})
_PLAIN_CHARACTERS = {
    name.rstrip(";"): text for name, text in html.entities.html5.items() if not set(text) & set("<>&\"'")
}


class LoadedDocument(NamedTuple):
    """The root element, and what had to be remedied. `partial`: something that the document had may be missing."""

    root: Element
    warnings: list[str]
    partial: bool = False


def load(data: bytes, charset: str = "", *, repair: bool = True) -> LoadedDocument:
    """Parses a whole document; `charset` is that of its Content-Type.

    Without `repair` a document that is not well-formed, or whose encoding can only be guessed, is refused: requests,
    and lists whose items are merged, must be what their senders wrote. Raises FeedError(INVALID_PAYLOAD) or
    FeedError(PAYLOAD_TOO_BIG).
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document is larger than {MAX_DOCUMENT_BYTES} bytes")
    if not data.strip():
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is empty")
    recoded = in_utf8(data, charset)
    if recoded.guessed and not repair:
        raise FeedError(Condition.INVALID_PAYLOAD, "the document holds bytes that its encoding does not have")
    data, warnings = recoded.data, recoded.warnings
    space = _LEADING_SPACE.match(data)
    if space is not None:
        if data.startswith(b"<?xml", space.end()):
            warnings.append("white space before the XML declaration was skipped")
        data = data[space.end() :]
    if repair:
        data, count = _CONTROLS.subn(_character_1252, data)
        if count:
            warnings.append("numbers of characters in windows-1252 were read as such")
    partial = False
    try:
        root = _parsed(data)
    except etree.XMLSyntaxError as error:
        if not repair or _is_final(error):
            raise document_error(error) from None
        root, partial = _repaired(data, error, warnings)
    _settle_entities(root, warnings)
    renamed = with_known_namespaces(root) if repair else None
    if renamed is not None:
        root = renamed
        warnings.append(NAMESPACE_NOTE)
    return LoadedDocument(root, warnings, partial)


def _is_final(error: etree.XMLSyntaxError) -> bool:
    return getattr(error, "code", 0) in _FINAL or is_too_deep(error)


def _character_1252(match: re.Match[bytes]) -> bytes:
    decimal, hexadecimal, raw = match.groups()
    number = raw[0] if raw else int(hexadecimal, 16) if hexadecimal else int(decimal)
    return bytes([number]).decode("cp1252").encode()


def _parsed(data: bytes) -> Element:
    CrowdCheck("utf-8").feed(data)
    return parse_xml(data, strict_parser("utf-8"))


def _repaired(data: bytes, error: etree.XMLSyntaxError, warnings: list[str]) -> tuple[Element, bool]:
    """The root of a feed that is not well-formed, and whether something may be missing. Each step adds its note."""
    text = data.decode("utf-8", "replace") if len(data) <= MAX_REPAIRED_BYTES else ""
    if feed_start(text) < 0:
        raise text_refusal(data, error) from None
    for repair in REPAIRS:
        changed = repair.run(text)
        if changed is None:
            continue
        text = changed
        warnings.append(repair.note)
        try:
            return _parsed(text.encode()), False
        except etree.XMLSyntaxError:
            continue
    result = balanced(text)
    warnings += result.notes
    try:
        return _parsed(result.text.encode()), result.is_cut
    except etree.XMLSyntaxError as second:
        return _recovered(result.text.encode(), second, warnings), True


def _recovered(data: bytes, error: etree.XMLSyntaxError, warnings: list[str]) -> Element:
    """Returns the tree that libxml2 recovers from a document that no repair could fix."""
    CrowdCheck("utf-8").feed(data)
    try:
        root = parse_xml(data, etree.XMLParser(encoding="utf-8", recover=True, **STRICT_OPTIONS))
    except etree.XMLSyntaxError:
        root = None
    if root is None or _is_final(error):
        raise document_error(error)
    warnings.append(
        f"last resort: the document {fault(error)}; a parser guessed what it means, and items may be missing"
    )
    return root


def _settle_entities(root: Element, warnings: list[str]) -> None:
    """Puts plain text in the place of entity references, or refuses the document."""
    dtd: Any = root.getroottree().docinfo.internalDTD
    if dtd is None:
        return
    texts = _entity_texts(dtd.iterentities())
    for count, node in enumerate(list(root.iter(etree.Entity))):
        name = (node.text or "")[1:-1]
        text = texts.get(name, _PLAIN_CHARACTERS.get(name))
        if text is None:  # the DTD that declares it is not opened
            text = f"&{name};"
            if UNKNOWN_ENTITIES not in warnings:
                warnings.append(UNKNOWN_ENTITIES)
        if count >= MAX_ENTITY_USES:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document uses entities more than {MAX_ENTITY_USES} times")
        replace_by_text(node, text)


def _entity_texts(entities: Iterable[Any]) -> dict[str, str]:
    """The entities that a document defines for itself. Raises FeedError unless all are plain and short."""
    texts: dict[str, str] = {}
    for entity in entities:
        content = entity.content
        if content is None or entity.system_url:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document defines an external entity, which is never opened")
        if set(content) & set("&%<") or len(content) > MAX_ENTITY_CHARACTERS:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document defines an entity that is more than a short text")
        texts[entity.name] = content
        if len(texts) > MAX_ENTITIES:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document defines more than {MAX_ENTITIES} entities")
    return texts
