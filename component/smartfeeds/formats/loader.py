"""Bytes of a whole document to a tree: encodings, harmless DTDs, and what is done about common faults.

Whole documents come from the open web, so a few faults that have one sure remedy are remedied, each with a warning:
white space before the XML declaration, HTML's entity names without a DTD, an encoding name that nobody knows over
bytes that are UTF-8, and the encoding names that browsers read as their supersets. Entities are never expanded by the
parser; a DTD is accepted when its entities are few, short and plain text. Nothing outside the document is opened.
"""

import codecs
import html.entities
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from lxml import etree

from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.formats.crowds import DECLARED_ENCODING, CrowdCheck
from smartfeeds.formats.xml import Element, document_error, replace_by_text, strict_parser
from smartfeeds.xml_names import parse_xml

# A tree takes several times its document in memory, and an import reads a document as a whole.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
# What a DTD may define: enough for "&company;", too little for growth.
MAX_ENTITIES = 64
MAX_ENTITY_CHARACTERS = 1024
MAX_ENTITY_USES = 10_000

_HEAD_BYTES = 1024
_LEADING_SPACE = re.compile(rb"\A(?:\xef\xbb\xbf)?[\x20\t\r\n]+(?=<\?xml)")
# A section or comment without an end reaches to the end of the data, so that nothing is looked at twice.
_NAMED_ENTITY = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&([A-Za-z][A-Za-z0-9]{1,31});", re.DOTALL)
# Decoding UTF-7 lets markup through every filter that looks for it.
_REFUSED_ENCODINGS = frozenset({"utf-7", "utf7", "unicode-1-1-utf-7", "csunicode11utf7"})
# Names that browsers read as the superset that their writers meant (WHATWG Encoding).
_SUPERSETS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii", "windows-1252"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("shift_jis", "shift-jis", "x-sjis"), "cp932"),
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
}
# Codecs of Python that are no character sets of documents; some of them take quadratic time.
_NO_CHARSETS = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_BYTE_ORDER_MARKS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
)
_DECLARATION = re.compile(r"""(\A\s*<\?xml[^>]{0,200}?)\s+encoding\s*=\s*(?:"[^"<>]*"|'[^'<>]*')""")
_UTF8 = frozenset({"utf-8", "utf8"})
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_C1 = re.compile(rb"[\x80-\x9f]")
_UNKNOWN_ENCODING = frozenset({etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING, etree.ErrorTypes.ERR_UNKNOWN_ENCODING})
_PLAIN_CHARACTERS = {
    name.rstrip(";"): text for name, text in html.entities.html5.items() if not set(text) & set("<>&\"'")
}


class LoadedDocument(NamedTuple):
    """The root element, and what had to be remedied."""

    root: Element
    warnings: list[str]


def load(data: bytes) -> LoadedDocument:
    """Parses a whole document. Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG)."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document is larger than {MAX_DOCUMENT_BYTES} bytes")
    if not data.strip():
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is empty")
    warnings: list[str] = []
    space = _LEADING_SPACE.match(data)
    if space is not None:
        data = data[space.end() :]
        warnings.append("white space before the XML declaration was skipped")
    data, encoding = _recoded(data, warnings)
    root = _parsed(data, encoding, warnings)
    _settle_entities(root)
    return LoadedDocument(root, warnings)


def in_charset(data: bytes, charset: str) -> bytes:
    """A document whose sender names its encoding, as one that needs nobody to name it.

    The precedence is that of RFC 7303 3: a byte order mark, then `charset`, then what the document declares. A charset
    that is not known, or that the document does not fit in, is ignored.
    """
    name = charset.strip().lower()
    if not name or data.startswith(_BYTE_ORDER_MARKS):
        return data
    for codec in (_SUPERSETS.get(name, name), name):
        text = _decoded(data, codec)
        if text is not None:
            return _DECLARATION.sub(r"\1", text, count=1).encode("utf-8", "surrogatepass")
    return data


def in_utf8(data: bytes, charset: str) -> tuple[bytes, str]:
    """A document from the open web for `load`, and a note if it is not in the encoding that it names.

    The precedence is that of `in_charset`. Bytes of a document in UTF-8 that are not UTF-8 are read as windows-1252, as
    browsers and feed readers do.
    """
    data = in_charset(data, charset)
    declaration = DECLARED_ENCODING.match(data[:_HEAD_BYTES])
    name = "utf-8" if declaration is None else declaration[1].decode().lower()
    if (
        name not in _UTF8
        or data.startswith(_BYTE_ORDER_MARKS)
        or b"\0" in data[:4]
        or _decoded(data, "utf-8") is not None
    ):
        return data, ""
    text = data.decode("utf-8", _OTHER_BYTES)
    return text.encode(), "bytes that are not UTF-8 were read as windows-1252"


def utf8_page(data: bytes, charset: str) -> bytes:
    """An HTML page in UTF-8: by its byte order mark, `charset`, its meta element, else as `in_utf8` (HTML 13.2.3.2)."""
    data = in_charset(data, charset)
    mark = next((mark for mark in _BYTE_ORDER_MARKS[:3] if data.startswith(mark)), None)
    meta = _META_CHARSET.search(data[:_HEAD_BYTES])
    name = "utf-16" if mark in _BYTE_ORDER_MARKS[1:3] else "" if meta is None else meta[1].decode().lower()
    # A page whose meta element can be read is in a superset of ASCII, or already in UTF-8.
    text = _decoded(data, "utf-8")
    for codec in (_SUPERSETS.get(name, name), name) if name and text is None else ():
        text = _decoded(data, codec) if text is None else text
    return (data.decode("utf-8", _OTHER_BYTES) if text is None else text).encode("utf-8", "replace")


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Decodes one byte as windows-1252. Undefined bytes are C1 controls (WHATWG Encoding), which become U+FFFD."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.start + 1].decode("cp1252", "replace"), error.start + 1


_OTHER_BYTES = "smartfeeds-windows-1252"
codecs.register_error(_OTHER_BYTES, _as_windows_1252)


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        return None if codecs.lookup(codec).name in _NO_CHARSETS else data.decode(codec)
    except (LookupError, UnicodeError):
        return None


def _recoded(data: bytes, warnings: list[str]) -> tuple[bytes, str | None]:
    """The data in an encoding that libxml2 reads right, and its name where that is not what the data declares."""
    declaration = DECLARED_ENCODING.match(data[:_HEAD_BYTES])
    name = declaration[1].decode().lower() if declaration is not None else ""
    if name in _REFUSED_ENCODINGS:
        raise FeedError(Condition.INVALID_PAYLOAD, "the document declares UTF-7, which is never read")
    superset = _SUPERSETS.get(name)
    if superset is None or (superset == "cp1252" and _C1.search(data) is None):
        return data, None
    text = _decoded(data, superset)
    if text is None:
        return data, None
    if superset == "cp1252":
        warnings.append(f"{name} was read as windows-1252")
    return text.encode("utf-8", "surrogatepass"), "utf-8"


def _parsed(data: bytes, encoding: str | None, warnings: list[str]) -> Element:
    CrowdCheck(encoding).feed(data)
    try:
        return parse_xml(data, strict_parser(encoding))
    except etree.XMLSyntaxError as error:
        code = getattr(error, "code", 0)
        if code in _UNKNOWN_ENCODING and encoding is None and _decoded(data, "utf-8") is not None:
            warnings.append("the declared encoding is not known; the document was read as UTF-8")
            return _parsed(data, "utf-8", warnings)
        if code == etree.ErrorTypes.ERR_UNDECLARED_ENTITY:
            changed = _NAMED_ENTITY.sub(_numeric, data)
            if changed != data:
                warnings.append("names of HTML characters were read although the document does not declare them")
                return _parsed(changed, encoding, warnings)
        head = data[:_HEAD_BYTES].lstrip(b"\xef\xbb\xbf\x20\t\r\n").lower()
        if head.startswith((b"<html", b"<!doctype html")):
            raise FormatError("the document is a web page, not a feed") from None
        if head.startswith((b"{", b"[")):
            raise FormatError("the document looks like JSON, not like XML") from None
        raise document_error(error) from None


def _numeric(match: re.Match[bytes]) -> bytes:
    """An HTML entity reference as character references; CDATA, comments and unknown names as they are."""
    characters = _PLAIN_CHARACTERS.get(match[1].decode()) if match[1] else None
    return match[0] if characters is None else "".join(f"&#{ord(c)};" for c in characters).encode()


def _settle_entities(root: Element) -> None:
    """Puts plain text in the place of entity references, or refuses the document."""
    dtd: Any = root.getroottree().docinfo.internalDTD
    if dtd is None:
        return
    texts = _entity_texts(dtd.iterentities())
    for count, node in enumerate(list(root.iter(etree.Entity))):
        name = (node.text or "")[1:-1]
        text = texts.get(name, _PLAIN_CHARACTERS.get(name))
        if text is None:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document uses the entity {name[:40]}, which is not known")
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
