"""A quick look for words in the bytes of marked up texts, before anybody reads the texts.

Reading the words of a payload takes some 40 us for each KB, and most payloads do not have the words of a search. Their
bytes say so: the letters of a word follow each other there, unless markup or a reference interrupts them, and both
begin with "<" or "&". So a payload has the word only if its bytes have, at the start of a word, the whole word or a
part of it before one of these characters. The whole word is looked for first, as bytes, and the look ends at the first
word that is missing. A reference or a character that may stand for a letter of ASCII proves nothing, and the text must
be read. The tests compare this with what is read (tests/property/test_word_search.py).
"""

import re
from collections.abc import Callable

# More characters of a word hardly exclude more payloads.
_COMPARED = 8
# The look must never take more time than to read the text, whoever has chosen the text and the words: so it is for few
# words, and for few of the places where one is a part of another word.
_WORDS = 4
_OCCURRENCES = 8
# Where "<" and "&" are more frequent, plain text is read as quickly. A short text may have some.
_MARKS = 50
_BYTES_OF_A_MARK = 14
# References of HTML that stand for no letter or digit of ASCII, not even after NFKC and folding: "&#8217;" and its
# neighbours are the punctuation from U+2000 to U+206B. HTML is escaped in a payload, so its references begin with
# "&amp;". So does "&amp;T" in the text "AT&T", which is read. An element may come in the midst of a reference.
_HARMLESS = (
    "lt|gt|amp|quot|apos|nbsp|[lrsb][abds]quo|[nm]dash|hellip|bull|middot|copy|reg|euro|pound|sect|para|deg"
    "|times|[aeiouyn](?:acute|grave|circ|uml|tilde)|[ao]ring|ccedil|oslash|aelig|#(?:34|38|39|160|8(?:19[2-9]|2[0-9]{2}))"
)
_REFERENCE = re.compile(f"&amp;(?![^a-z#<]|(?:{_HARMLESS});)".encode())
_SHARP_S = "ß".encode()  # the only frequent letter that is folded to letters of ASCII: to "ss"
# The UTF-8 of other characters that NFKC and folding turn into letters or digits of ASCII, such as the long s; whole
# blocks where these have no frequent character.
_LIKE_ASCII = re.compile(
    rb"[\xc2\xc4-\xcb\xe1\xe3\xea\xef-\xff](?:(?<=[\xc6-\xcb\xe1\xf1-\xff])|(?<=\xc2)[\xaa\xb2-\xbe]|(?<=\xc4)[\xb0\xb2\xb3\xbf]"
    rb"|(?<=\xc5)[\x80\x89\xbf]|(?<=\xe3)[\x84-\x8f]|(?<=\xea)[\x80-\xaf]|(?<=\xef)(?!\xb8)|(?<=\xf0)(?!\x9f[\x87-\xae]))"
)
_LIKE_ASCII_OF_E2 = re.compile(rb"\xe2(?:[^\x80\x82\x94-\xb0\xb2-\xbf]|\x82[^\xac])")


def searcher(query: frozenset[str]) -> Callable[[bytes], bool]:
    """Returns a function that returns whether a payload may contain these words, folded as `core.text.words` does.

    Where it returns False, the text has not all of them. Only words of ASCII are looked for.
    """
    longest = sorted((word for word in query if word.isascii()), key=lambda word: (-len(word), word))[:_WORDS]
    beginnings = [
        (word[:_COMPARED].encode(), len(word) <= _COMPARED, _interruption(word[:_COMPARED])) for word in longest
    ]

    def may_contain(payload: bytes) -> bool:
        lower = payload.lower()
        is_ascii = lower.isascii()
        if not is_ascii:
            lower = lower.replace(_SHARP_S, b"ss")
        for beginning, is_whole, interruption in beginnings:
            if not _is_there(lower, beginning, is_whole):
                # Only the first missing word decides: a hostile text may have every word in pieces at its end.
                return _is_interrupted(lower, interruption) or _is_uncertain(lower, is_ascii)
        return True

    return may_contain


def _is_there(lower: bytes, word: bytes, is_whole: bool) -> bool:
    """Returns whether a text has this word, or this beginning of one. True if its first occurrences are in words."""
    at = -1
    for _ in range(_OCCURRENCES):
        at = lower.find(word, at + 1)
        if at < 0:
            return False
        end = at + len(word)
        if not (lower[at - 1 : at].isalnum() or (is_whole and lower[end : end + 1].isalnum())):
            return True
    return True


def _is_interrupted(lower: bytes, interruption: re.Pattern[bytes]) -> bool:
    marks = b" " + lower.replace(b"&", b"<")
    return marks.count(b"<") > _MARKS + len(marks) // _BYTES_OF_A_MARK or interruption.search(marks) is not None


def _is_uncertain(lower: bytes, is_ascii: bool) -> bool:
    """Returns whether a text has a reference or a character that may stand for a letter or digit of ASCII."""
    return (
        b"&#" in lower
        or (b"&amp;" in lower and _REFERENCE.search(lower) is not None)
        or not (is_ascii or (_LIKE_ASCII.search(lower) is None and _LIKE_ASCII_OF_E2.search(lower) is None))
    )


def _interruption(word: str) -> re.Pattern[bytes]:
    """Returns the pattern of a beginning of a word that "<" interrupts."""
    if len(word) == 1:
        return re.compile(b"(?!)")  # nothing interrupts one character
    # "<" comes before the conditions on what precedes it: so the search skips to this character.
    beginnings = "|".join(f"(?<=[^a-z0-9]{word[:size]}.)" for size in range(1, len(word)))
    return re.compile(f"<(?<=[{word}].)(?:{beginnings})".encode())
