"""What Atom documents of this service add to an entry, and what somebody else only says that they added."""

import pytest
from lxml import etree

from smartfeeds.formats.additions import EXPORT_NS, completion, take_additions
from smartfeeds.formats.atom import ATOM_NS


def entry(inside: str) -> etree._Element:
    return etree.fromstring(f'<entry xmlns="{ATOM_NS}" xmlns:sf="{EXPORT_NS}">{inside}</entry>')


@pytest.mark.parametrize(
    "inside",
    [
        "<title sf:added='true'>t</title>",
        "<content sf:added='true'>c</content>",
        "<summary sf:added='true'>s</summary>",
        "<content type='xhtml' sf:added='true'><div xmlns='http://www.w3.org/1999/xhtml'/></content>",
        "<x xmlns='urn:x' sf:added='true'/>",
        "<category term='a' sf:added='true'/>",
    ],
)
def test_what_no_document_adds_stays_whatever_it_says(inside: str) -> None:
    """Only the mark goes: nothing that somebody wrote disappears without a word."""
    root, plain = entry(inside), entry(inside.replace(" sf:added='true'", ""))

    take_additions(root)

    assert etree.tostring(root, method="c14n", exclusive=True) == etree.tostring(plain, method="c14n", exclusive=True)


@pytest.mark.parametrize(
    ("payload", "address"), [("", "https://e/x"), ("", ""), ("<content src='https://e/x' type='image/png'/>", "")]
)
def test_what_documents_add_is_taken_away(payload: str, address: str) -> None:
    """Author, link, and empty summary or content."""
    stored = etree.tostring(entry(payload), method="c14n", exclusive=True)
    added = completion(stored, "a", address)
    assert added.count(b"sf:added") == 2
    root = etree.fromstring(stored.replace(b"</entry>", added + b"</entry>"))

    take_additions(root)

    assert etree.tostring(root, method="c14n", exclusive=True) == stored
