"""A quick look for words in the bytes of marked up texts, before anybody reads the texts.

Reading the words of a payload takes some 40 us for each KB, and most payloads do not have the words of a search. Their
bytes say so: the letters of a word follow each other there, unless markup or a reference interrupts them, and both
begin with "<" or "&". So a payload has the word only if its bytes have, at the start of a word, the whole word or a
part of it before one of these characters. A reference or a character that may stand for a letter of ASCII proves
nothing, and the text must be read. The tests compare this with what is read (tests/property/test_word_search.py).
"""

import re
from collections.abc import Callable

# More characters of a word hardly exclude more payloads.
_COMPARED = 8
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
    rb"\xc2[\xaa\xb2-\xbe]|\xc4[\xb0\xb2\xb3\xbf]|\xc5[\x80\x89\xbf]|[\xc6-\xcb]|\xe1|\xe2(?![\x80\x94-\xb0\xb2-\xbf]|\x82\xac)"
    rb"|\xe3[\x84-\x8f]|\xea[\x80-\xaf]|\xef(?!\xb8)|\xf0(?!\x9f[\x87-\xae])|[\xf1-\xff]"
)


def searcher(query: frozenset[str]) -> Callable[[bytes], bool]:
    """Returns a function that returns whether a payload may contain these words, folded as `core.text.words` does.

    Where it returns False, the text has not all of them. Only words of ASCII are looked for.
    """
    patterns = [_pattern(word) for word in query if word.isascii()]

    def may_contain(payload: bytes) -> bool:
        lower = payload.lower()
        is_ascii = lower.isascii()
        if not is_ascii:
            lower = lower.replace(_SHARP_S, b"ss")
        if None not in [pattern.search(lower) for pattern in patterns]:
            return True
        return (
            b"&#" in lower
            or (b"&amp;" in lower and _REFERENCE.search(lower) is not None)
            or not (is_ascii or _LIKE_ASCII.search(lower) is None)
        )

    return may_contain


def _pattern(word: str) -> re.Pattern[bytes]:
    rest = word[1:_COMPARED]
    # The first character comes before the condition on what precedes it: so the search skips to this character.
    inner = "" if len(word) > _COMPARED else "(?![a-z0-9])"
    for character in reversed(rest):
        inner = f"(?:[<&]|{character}{inner})"
    return re.compile(f"{word[0]}(?<![a-z0-9].){inner}".encode())
