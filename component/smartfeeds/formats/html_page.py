"""Web pages of strangers as trees: parsed leniently, but never with a crowd of attributes (xep-map 246)."""

import re
from typing import Final

from lxml import etree

from smartfeeds.formats.crowds import TAG_ATTRIBUTES
from smartfeeds.formats.xml import Element
from smartfeeds.xml_names import parse_xml

# An attribute as browsers read it (HTML 13.2.5.32 to 13.2.5.39). Repeats of characters are possessive, so that no byte
# is looked at twice; repeats of groups are not, because Python before 3.11.5 matches such groups wrongly.
_ATTRIBUTE: Final = rb"[\s/]++[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"']++[^\s>]*+))?"
_TAG = re.compile(rb"<[A-Za-z][^\s/>]*+(?:%b){0,%d}(%b)?" % (_ATTRIBUTE, TAG_ATTRIBUTES, _ATTRIBUTE))


def parse_page(html: bytes, encoding: str | None = None) -> Element | None:
    """The root of a web page, None for a page that cannot be read.

    libxml2 compares the attributes of a tag with each other: 100,000 of them take 90 s. So a page with a tag that has
    more than TAG_ATTRIBUTES attributes is not read.
    """
    if any(tag[1] for tag in _TAG.finditer(html)):
        return None
    parser = etree.HTMLParser(
        encoding=encoding, no_network=True, remove_comments=True, remove_pis=True, huge_tree=False
    )
    try:
        return parse_xml(html, parser)
    except (etree.LxmlError, ValueError):
        return None
