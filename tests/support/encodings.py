"""Feeds in many encodings, correct and wrong ones."""

import codecs

RUSSIAN = "Привет, мир: новости"
WESTERN = "Café “Zürich” – 5 €"
JAPANESE = "日本語のニュース"
CHINESE = "中文新闻標題"
KOREAN = "한국어 뉴스"


def feed(text: str, declared: str = "", before: str = "") -> str:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    item = f"<item><guid>urn:x:1</guid><title>{text}</title></item>"
    return (
        f'{before}{declaration}<rss version="2.0"><channel><title>{text}</title><link>http://a.example/</link>'
        f"<description>d</description>{item}</channel></rss>"
    )


def in_language(text: str, language: str, declared: str = "") -> str:
    return feed(text, declared).replace("</link>", f"</link><language>{language}</language>", 1)


# body, charset of the header, the text that is meant, whether a note says that something was wrong
CASES = {
    "utf-8": (feed(RUSSIAN).encode(), "", RUSSIAN, False),
    "mark of utf-8": (codecs.BOM_UTF8 + feed(RUSSIAN).encode(), "", RUSSIAN, False),
    "mark of utf-8 against all names": (codecs.BOM_UTF8 + feed(WESTERN, "latin1").encode(), "koi8-r", WESTERN, False),
    "mark of utf-16-le": (feed(RUSSIAN, "utf-16").encode("utf-16"), "", RUSSIAN, False),
    "mark of utf-16-be": (codecs.BOM_UTF16_BE + feed(RUSSIAN, "utf-16").encode("utf-16-be"), "", RUSSIAN, False),
    "mark of utf-32": (feed(RUSSIAN, "utf-32").encode("utf-32"), "", RUSSIAN, False),
    "utf-16-le without mark": (feed(RUSSIAN, "utf-16").encode("utf-16-le"), "", RUSSIAN, False),
    "utf-16-be without mark, wrong header": (feed(RUSSIAN, "utf-16").encode("utf-16-be"), "utf-8", RUSSIAN, False),
    "utf-16 behind a line feed": (feed(RUSSIAN, "utf-16", "\n").encode("utf-16-le"), "", RUSSIAN, True),
    "utf-32-be without mark": (feed(RUSSIAN, "utf-32").encode("utf-32-be"), "", RUSSIAN, False),
    "declares utf-16, is utf-8": (feed(RUSSIAN, "utf-16").encode(), "", RUSSIAN, False),
    "header says utf-16, is utf-8": (feed(RUSSIAN, "utf-8").encode(), "utf-16", RUSSIAN, False),
    "declared cp1251": (feed(RUSSIAN, "windows-1251").encode("cp1251"), "", RUSSIAN, False),
    "line feed before the declaration": (feed(RUSSIAN, "windows-1251", "\n").encode("cp1251"), "", RUSSIAN, True),
    "blanks before the declaration": (feed(RUSSIAN, "koi8-r", " \r\n\t\n").encode("koi8-r"), "", RUSSIAN, True),
    "mark and blank": (codecs.BOM_UTF8 + feed(RUSSIAN, "utf-8", " ").encode(), "", RUSSIAN, True),
    "two marks": (codecs.BOM_UTF8 * 2 + feed(RUSSIAN, "utf-8").encode(), "", RUSSIAN, False),
    "header of a feed that declares nothing": (feed(RUSSIAN).encode("cp1251"), "windows-1251", RUSSIAN, False),
    "header against a declaration of utf-8": (feed(RUSSIAN, "utf-8").encode("cp1251"), "windows-1251", RUSSIAN, False),
    "header against a declaration": (feed(RUSSIAN, "windows-1251").encode("koi8-r"), "koi8-r", RUSSIAN, False),
    "header utf-8 against a declaration": (feed(RUSSIAN, "windows-1251").encode("cp1251"), "utf-8", RUSSIAN, False),
    "default header against a declaration": (
        feed(RUSSIAN, "windows-1251").encode("cp1251"), "ISO-8859-1", RUSSIAN, False,
    ),
    "default header against utf-8": (feed(WESTERN, "utf-8").encode(), "iso-8859-1", WESTERN, False),
    "default header alone": (feed(WESTERN).encode("cp1252"), "us-ascii", WESTERN, False),
    "declaration without quotes": (
        feed(RUSSIAN, "koi8-r").replace('"koi8-r"', "koi8-r").encode("koi8-r"), "", RUSSIAN, False,
    ),
    "declaration in capitals": (feed(RUSSIAN, "koi8-r").replace("enc", "ENC").encode("koi8-r"), "", RUSSIAN, False),
    "declaration behind a message": (feed(RUSSIAN, "koi8-r", "<b>Notice</b>").encode("koi8-r"), "", RUSSIAN, True),
    "declares latin1, is utf-8": (feed(WESTERN, "iso-8859-1").encode(), "", WESTERN, True),
    "declares cp1251, is utf-8": (feed(RUSSIAN, "windows-1251").encode(), "", RUSSIAN, True),
    "declares utf-8, is cp1252": (feed(WESTERN, "utf-8").encode("cp1252"), "", WESTERN, True),
    "declares latin1, is cp1252": (feed(WESTERN, "iso-8859-1").encode("cp1252"), "", WESTERN, True),
    "declares nothing, is cp1252": (feed(WESTERN).encode("cp1252"), "", WESTERN, True),
    "quotes of cp1252 in utf-8": (
        feed(RUSSIAN + "@q@", "utf-8").encode().replace(b"@q@", b"\x93q\x94"), "", RUSSIAN + "“q”", True,
    ),
    "undefined byte of cp1252": (
        feed("a@", "windows-1252").encode().replace(b"a@", b"a\x81b\xe9"), "", "a\x81bé", False,
    ),
    "shift_jis": (feed(JAPANESE, "Shift_JIS").encode("cp932"), "", JAPANESE, False),
    "x-sjis": (feed(JAPANESE, "x-sjis").encode("cp932"), "", JAPANESE, False),
    "one bad byte in euc-jp": (
        feed(JAPANESE * 20 + "!", "EUC-JP").encode("euc-jp").replace(b"!</title></item>", b"\xff</title></item>"),
        "", JAPANESE * 20 + "\ufffd", True,
    ),
    "euc-jp": (feed(JAPANESE, "euc-jp").encode("euc-jp"), "", JAPANESE, False),
    "iso-2022-jp": (feed(JAPANESE, "iso-2022-jp").encode("iso-2022-jp"), "", JAPANESE, False),
    "gb2312 with characters of gbk": (feed(CHINESE, "gb2312").encode("gbk"), "", CHINESE, False),
    "GB18030": (feed(CHINESE, "GB18030").encode("gb18030"), "", CHINESE, False),
    "big5": (feed("繁體中文", "Big5").encode("big5"), "", "繁體中文", False),
    "ks_c_5601": (feed(KOREAN, "ks_c_5601-1987").encode("cp949"), "", KOREAN, False),
    "iso-8859-8-i": (feed("שלום", "iso-8859-8-i").encode("iso-8859-8"), "", "שלום", False),
    "unknown name": (feed(RUSSIAN, "x-nobody").encode(), "", RUSSIAN, True),
    "language ru": (in_language(RUSSIAN, "ru-RU").encode("cp1251"), "", RUSSIAN, True),
    "language ru, declares utf-8": (in_language(RUSSIAN, "ru", "utf-8").encode("cp1251"), "utf-8", RUSSIAN, True),
    "language ja": (in_language(JAPANESE, "ja").encode("cp932"), "", JAPANESE, True),
    "language zh_CN": (in_language(CHINESE, "zh_CN").encode("gb18030"), "", CHINESE, True),
    "language zh-TW": (in_language("繁體中文", "zh-TW").encode("big5"), "", "繁體中文", True),
    "language ko": (in_language(KOREAN, "ko").encode("cp949"), "", KOREAN, True),
    "language el": (in_language("Ελλάδα", "el").encode("cp1253"), "", "Ελλάδα", True),
    "language cs": (in_language("Příliš žluťoučký", "cs").encode("cp1250"), "", "Příliš žluťoučký", True),
    "language pl": (in_language("Zażółć gęślą", "pl").encode("iso8859-2"), "", "Zażółć gęślą", True),
    "language de": (in_language(WESTERN, "de").encode("cp1252"), "", WESTERN, True),
    "language that does not fit": (in_language(WESTERN, "ja").encode("cp1252"), "", WESTERN, True),
    "language ru, a wrong byte in utf-8": (
        in_language(f"{RUSSIAN} @", "ru").encode().replace(b"@", b"\x96"), "", f"{RUSSIAN} –", True,
    ),
    "unknown name and other bytes": (feed(WESTERN, "x-nobody").encode("cp1252"), "", WESTERN, True),
    "declaration behind much white space": (
        ("\n" * 5_000 + feed(RUSSIAN, "windows-1251")).encode("cp1251"), "", RUSSIAN, True,
    ),
    "cesu-8": (
        feed(RUSSIAN + "@", "utf-8").encode().replace(b"@", b"\xed\xa0\xbd\xed\xb8\x80"), "", RUSSIAN + "😀", True,
    ),
    "cesu-8 behind a mark": (
        b"\xef\xbb\xbf" + feed("@").encode().replace(b"@", b"\xed\xa0\xbd\xed\xb8\x80"), "", "😀", True,
    ),
    "half of a character": (feed("a@b").encode().replace(b"@", b"\xed\xa0\xbd"), "", "a\ufffdb", True),
    "unknown header": (feed(RUSSIAN, "windows-1251").encode("cp1251"), "none", RUSSIAN, False),
    "name of python that is no encoding": (feed(r"\x41", "unicode_escape").encode(), "zlib", r"\x41", True),
}  # fmt: skip
