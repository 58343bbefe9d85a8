"""Bytes of documents from the web as UTF-8 (XML 1.0 4.3.3 and appendix F, RFC 7303 3, RFC 8259 8.1, WHATWG Encoding).

One function serves polls, pushes, imports and `convert`. The first of these that fits the bytes decides:

1. a byte order mark;
2. the NUL bytes around the first character (UTF-16 and UTF-32 without a mark);
3. the bytes themselves, if they are valid UTF-8 or CESU-8 beyond ASCII, which no text in another encoding is by chance;
4. the charset of the header, except ISO-8859-1 and US-ASCII, which servers send for everything;
5. the encoding that the document declares;
6. ISO-8859-1 or US-ASCII of the header, read as windows-1252;
7. a multi-byte encoding of 4 or 5 in which a few bytes are wrong;
8. the encoding that is usual in the language of the document (HTML 13.2.3.2), if most bytes are not UTF-8;
9. UTF-8, in which each byte that is wrong is windows-1252.

A name that is not known, or whose encoding does not fit the bytes, counts for nothing. UTF-7 and EBCDIC are refused.
"""

import codecs
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from smartfeeds.errors import Condition, FeedError

HEAD_BYTES: Final = 1024
# Names that the table of Python lacks, or that browsers read as the superset that writers meant (WHATWG Encoding).
_ALIASES: Final = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "iso8859-1", "us-ascii", "ascii", "ansi"), "cp1252"),
    **dict.fromkeys(("gb2312", "gb-2312", "gbk", "x-gbk", "cp936", "x-euc-cn"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks-c-5601", "ks-c-5601-1987", "ks-c-5601-1989", "ksc5601", "ksc-5601"), "cp949"),
    **dict.fromkeys(("shift-jis", "sjis", "x-sjis", "shiftjis", "ms-kanji", "windows-31j"), "cp932"),
    **dict.fromkeys(("big5", "big-5", "x-x-big5", "cn-big5", "big5-hkscs"), "big5hkscs"),
    **dict.fromkeys(("iso-8859-9", "latin5", "iso8859-9"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "tis620", "dos-874"), "cp874"),
    **dict.fromkeys(("iso-8859-8-i", "iso-8859-8-e", "logical", "visual"), "iso8859-8"),
    **dict.fromkeys(("iso-8859-6-i", "iso-8859-6-e"), "iso8859-6"),
    **dict.fromkeys(("koi8", "koi", "koi8r", "koi-8-r", "koi8-ru"), "koi8-r"),
    **dict.fromkeys(("macintosh", "x-mac-roman", "mac"), "mac-roman"),
    "x-mac-cyrillic": "mac-cyrillic",
    "x-euc-jp": "euc-jp",
    "unicode-1-1-utf-8": "utf-8",
    "ucs-2": "utf-16",
}
_WINDOWS: Final = re.compile(r"(?:x-)?(?:windows|win|cp|ms)-?(125[0-8]|874)")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,39}")
# Decoding UTF-7 lets markup through every filter that looks for it.
_UTF7: Final = frozenset({"utf-7", "utf7", "unicode-1-1-utf-7", "csunicode11utf7", "x-unicode-2-0-utf-7"})
# Codecs of Python that are no character sets of documents; some of them take quadratic time.
_NO_CHARSETS: Final = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_STATEFUL: Final = ("iso2022", "hz")
# The two marks of UTF-32 come first, because that of UTF-16 begins one of them.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first character is markup, JSON or white space, all of them ASCII.
_WIDE: Final = (
    (re.compile(rb"[\t\n\r <{\[]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0\0\0[\t\n\r <{\[]"), "utf-32-be"),
    (re.compile(rb"[\t\n\r <{\[]\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0[\t\n\r <{\[]\0[^\0]"), "utf-16-be"),
)
_EBCDIC: Final = b"\x4c\x6f\xa7\x94"
# The text before a declaration is skipped by `loader`, so its encoding counts all the same.
_DECLARED: Final = re.compile(
    rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*(?:"([^"<>]{1,60})"|'([^'<>]{1,60})'|([A-Za-z0-9._:-]{1,60}))""",
    re.IGNORECASE,
)
_DECLARATION: Final = re.compile(
    r"""(<\?xml\s[^>]{0,200}?)\s+encoding\s*=\s*(?:"[^"<>]{0,60}"|'[^'<>]{0,60}'|[A-Za-z0-9._:-]{1,60})""",
    re.IGNORECASE,
)
_META: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_LANGUAGE_BYTES: Final = 8192
_LANGUAGE: Final = re.compile(
    rb"""(?:<(?:dc:)?language>\s*|\sxml:lang\s*=\s*["'])(zh[-_](?:tw|hk)|[a-z]{2})(?![a-z])""", re.IGNORECASE
)
# HTML 13.2.3.2, with the supersets that browsers read.
_BY_LANGUAGE: Final = {
    **dict.fromkeys((b"ru", b"be", b"bg", b"ky", b"mk", b"sr", b"tg", b"tt", b"uk"), "cp1251"),
    **dict.fromkeys((b"cs", b"hr", b"sk"), "cp1250"),
    **dict.fromkeys((b"hu", b"pl", b"sl"), "iso8859-2"),
    **dict.fromkeys((b"ar", b"fa"), "cp1256"),
    **dict.fromkeys((b"et", b"lt", b"lv"), "cp1257"),
    **dict.fromkeys((b"tr", b"ku"), "cp1254"),
    b"el": "cp1253",
    b"he": "cp1255",
    b"th": "cp874",
    b"ja": "cp932",
    b"ko": "cp949",
    b"zh": "gb18030",
    **dict.fromkeys((b"zh-tw", b"zh-hk"), "big5hkscs"),
}
_SPACE: Final = b" \t\r\n"
_C1: Final = re.compile(rb"[\x80-\x9f]")
_WRONG_BYTES: Final = "bytes that are not UTF-8 were read as windows-1252"
_UNKNOWN: Final = "the declared encoding is not known; the document was read as UTF-8"
_MAX_WRONG: Final = 0.01  # of the characters of a multi-byte text


class Recoded(NamedTuple):
    """A document in UTF-8 without a byte order mark, and what was wrong with its encoding. `guessed`: rule 7 to 9."""

    data: bytes
    warnings: list[str]
    guessed: bool = False


def in_utf8(data: bytes, charset: str = "") -> Recoded:
    """A document of any format in UTF-8; `charset` is the parameter of its Content-Type.

    If the document was in another encoding, its declaration names none afterwards, so that the result can be given to
    this function again. Raises FeedError(INVALID_PAYLOAD) for UTF-7 and EBCDIC.
    """
    lead = len(data) - len(data.lstrip(_SPACE))
    declaration = _DECLARED.search(data, lead, lead + HEAD_BYTES)
    declared = "" if declaration is None else next(filter(None, declaration.groups())).decode("ascii", "replace")
    if declared.strip().lower().replace("_", "-") in _UTF7:
        raise FeedError(Condition.INVALID_PAYLOAD, "the document declares UTF-7, which is never read")
    return _recoded(data, charset, declared)


def utf8_page(data: bytes, charset: str) -> bytes:
    """An HTML page in UTF-8. Its meta element declares the encoding (HTML 13.2.3.2)."""
    meta = _META.search(data[:HEAD_BYTES])
    return _recoded(data, charset, "" if meta is None else meta[1].decode()).data


def in_utf8_exactly(data: bytes, charset: str) -> bytes:
    """A document with sync data in UTF-8. One whose encoding can only be guessed is returned as it is, for a parser to
    refuse: readers that merge versions of an item must read the same text."""
    recoded = in_utf8(data, charset)
    return data if recoded.guessed else recoded.data


def codec_of(name: str) -> str:
    """The codec of a character set as headers and declarations spell it, "" for an unknown or refused one."""
    match = _NAME.search(name.strip().strip("\"'").replace("_", "-").replace(" ", "-"))
    if match is None:
        return ""
    label = match[0].lower().rstrip(".:+-")
    windows = _WINDOWS.fullmatch(label)
    label = f"cp{windows[1]}" if windows is not None else _ALIASES.get(label, label)
    try:
        info = codecs.lookup(label)
    except (LookupError, ValueError):
        return ""
    # `lookup` finds zlib, hex and rot13 too, which decode bytes to bytes. Python has no public name for what tells them
    # apart; `bytes.decode` looks at the same attribute.
    return "" if info.name in _NO_CHARSETS or not info._is_text_encoding else info.name


def _recoded(data: bytes, charset: str, declared: str) -> Recoded:
    if data.startswith(_EBCDIC):
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is in EBCDIC, which is not read")
    for mark, codec in _MARKS:
        if data.startswith(mark):
            while data.startswith(mark):  # files that were joined have several
                data = data[len(mark) :]
            return _certain(data, codec, "byte order mark")
    for pattern, codec in _WIDE:
        if pattern.match(data):
            return _certain(data, codec, "first bytes")
    names = [codec_of(charset), codec_of(declared)]
    # A wide encoding whose name can be read in ASCII is not the encoding.
    names = ["utf-8" if name.startswith(("utf-16", "utf-32")) else name for name in names]
    if data.isascii():
        codec = next((name for name in names if name.startswith(_STATEFUL)), "")
        text = _decoded(data, codec) if codec else None
        if text is not None:
            return Recoded(_without_declaration(text), [])
        is_right = names[1] != "" or not declared
    elif _decoded(data, "utf-8") is not None:
        is_right = names[1] == "utf-8" or not declared
    else:
        return _with_halves(data) or _in_named(data, names, declared)
    if is_right:
        return Recoded(data, [])
    note = f"the document declares {declared[:40]}, but is UTF-8" if names[1] else _UNKNOWN
    return Recoded(_without_declaration(data.decode()), [note])


def _in_named(data: bytes, names: Sequence[str], declared: str) -> Recoded:
    """A document that is not UTF-8, in one of the encodings of its header and its declaration."""
    header, own = names
    ordered = [own, header] if header == "cp1252" else [header, own]
    candidates = [name for name in dict.fromkeys(ordered) if name not in ("", "utf-8")]
    for name in candidates:
        text = _decoded(data, name)
        if text is not None:
            is_latin = name == own == "cp1252" and "125" not in declared and _C1.search(data) is not None
            return Recoded(_without_declaration(text), [f"{declared} was read as windows-1252"] if is_latin else [])
    for name in candidates:
        text = data.decode(name, "replace")
        wrong = text.count("\ufffd")
        if 0 < wrong <= max(1, len(text) * _MAX_WRONG):
            return Recoded(_without_declaration(text), [f"{wrong} characters are no {name} and were replaced"], True)
    unknown = f"the encoding {declared[:40]} is not known; " if declared and not own else ""
    codec = _usual_codec(data)
    text = _decoded(data, codec) if codec else None
    if text is not None:
        note = f"{unknown}bytes that are not UTF-8 were read as {codec}, which is usual in the language of the document"
        return Recoded(_without_declaration(text), [note], True)
    text = data.decode("utf-8", _OTHER_BYTES)
    return Recoded(_without_declaration(text), [f"{unknown}{_WRONG_BYTES}"], True)


def _usual_codec(data: bytes) -> str:
    """The encoding that is usual in the language of a document, "" where most of its text is UTF-8."""
    match = _LANGUAGE.search(data, 0, _LANGUAGE_BYTES)
    codec = "" if match is None else _BY_LANGUAGE.get(match[1].lower().replace(b"_", b"-"), "")
    if not codec:
        return ""
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return codec if sum(not c.isascii() for c in text) < 2 * wrong else ""


def _certain(data: bytes, codec: str, proof: str) -> Recoded:
    """A document whose encoding is proved; what is wrong in it is replaced."""
    text = _decoded(data, codec)
    if text is not None:
        return Recoded(_without_declaration(text), [])
    if codec == "utf-8":
        return _with_halves(data) or Recoded(
            _without_declaration(data.decode("utf-8", _OTHER_BYTES)), [_WRONG_BYTES], True
        )
    text = data.decode(codec, "replace")
    note = f"the {proof} says {codec}; bytes that are not were replaced"
    return Recoded(_without_declaration(text), [note], True)


def _with_halves(data: bytes) -> Recoded | None:
    """A document in CESU-8 (Unicode TR 26), as older databases and Java write UTF-8: characters beyond the first plane
    are two halves of three bytes each. None for any other document."""
    try:
        # UTF-16 joins the two halves to one character. A half alone becomes U+FFFD.
        text = data.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except UnicodeError:
        return None
    return Recoded(_without_declaration(text), ["characters in halves (CESU-8) were read as such"], True)


def _without_declaration(text: str) -> bytes:
    end = len(text) - len(text.lstrip(_SPACE.decode())) + HEAD_BYTES
    head = _DECLARATION.sub(r"\1", text[:end], count=1)
    return (head + text[end:]).encode("utf-8", "replace")


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec, _UNDEFINED if codec.startswith("cp125") else "strict")
    except UnicodeError:
        return None


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Decodes one byte as windows-1252."""
    assert isinstance(error, UnicodeDecodeError)  # nothing is encoded with this handler
    return error.object[error.start : error.start + 1].decode("cp1252", _UNDEFINED), error.start + 1


def _as_control(error: UnicodeError) -> tuple[str, int]:
    """Decodes one byte that a Windows code page leaves undefined, as browsers do (WHATWG Encoding)."""
    assert isinstance(error, UnicodeDecodeError)
    return chr(error.object[error.start]), error.start + 1


# The register of codecs belongs to the process, so the names must not collide with those of other packages.
_OTHER_BYTES: Final = "smartfeeds-windows-1252"
_UNDEFINED: Final = "smartfeeds-undefined"
codecs.register_error(_OTHER_BYTES, _as_windows_1252)
codecs.register_error(_UNDEFINED, _as_control)
