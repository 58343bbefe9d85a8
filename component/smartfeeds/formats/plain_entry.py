"""The grammar of plain Atom entries, which are read from their bytes without a tree.

An entry is plain if all its elements are of Atom without a prefix, and only its persons have children. Nearly all
entries are, and a tree takes four times as long. All other entries are read from a tree. The tests compare both
(tests/property/test_plain_entry.py, test_activities.py).
"""

import re

from smartfeeds.core.options import ATOM

ENTRY_START = f'<entry xmlns="{ATOM}"'.encode()  # the start of most stored entries
_START, _END = ENTRY_START + b">", b"</entry>"
# A child with its text, a person with its children, or any other markup, which leaves all groups empty. In canonical
# form ">" may occur in the value of an attribute, but neither "<" nor a quotation mark.
ATTRIBUTES = r'(?: (?!xmlns)[a-z:]+="[^"<]*")*'
_CHILD = re.compile(
    rf"<([a-z]+)({ATTRIBUTES})>"
    r"([^<]*|(?:(?<=<author>)|(?<=<contributor>))(?:<(?:name|uri|email)>[^<]*</(?:name|uri|email)>)+)</\1>"
    r"|<"
)
_OTHER = ("", "", "")
# Return the names and stored values of the attributes of a child, and of the elements in a person. As functions they
# would take a tenth of the time of an entry.
find_attributes = re.compile(r' ([^=]+)="([^"]*)"').findall
find_parts = re.compile(r"<([a-z]+)>([^<]*)</").findall
# The references of canonical form, the ampersand last: it may be the start of what looks like another reference.
_REFERENCES = tuple(zip(("&quot;", "&#x9;", "&#xA;", "&#xD;", "&amp;"), '"\t\n\r&', strict=True))


def plain_children(payload: bytes) -> list[tuple[str, str, str]] | None:
    """Returns the children of a plain entry as they are stored: the name, the attributes, and the text or, in a person,
    the elements. None if the canonical bytes are anything else.
    """
    if not (payload.startswith(_START) and payload.endswith(_END)):
        return None
    try:
        children: list[tuple[str, str, str]] = _CHILD.findall(payload[len(_START) : -len(_END)].decode())
    except UnicodeDecodeError:  # of a damaged database
        return None
    return None if _OTHER in children else children


def unescape(stored: str) -> str:
    """A stored text or value without references."""
    # HTML has many of these two, and each search passes all other references.
    stored = stored.replace("&lt;", "<").replace("&gt;", ">")
    if "&" in stored:
        for reference, character in _REFERENCES:
            stored = stored.replace(reference, character)
    return stored
