"""Atom and RSS documents as a browser shows them: with a style sheet that explains the feed.

Only requests that prefer HTML get it, so the documents of feed readers stay as they are. Chromium shows the media types
of feeds as plain text and Firefox downloads them, so the styled document is `application/xml`, which both show.
"""

from urllib.parse import urlsplit

from smartfeeds.http import negotiation as n
from smartfeeds.http.negotiation import Representation
from smartfeeds.http.web.static_files import static_path

XML = "application/xml; charset=utf-8"
STYLED = frozenset({n.ATOM, n.RSS})
# The document loads the style sheet and nothing else.
STYLED_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'self'; frame-ancestors 'none'"}
_DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def is_for_browser(form: Representation, accept: str) -> bool:
    """Whether a document goes to a browser, which prefers HTML to the type of the document."""
    return form in STYLED and n.choose(accept, (form, n.HTML)) is n.HTML


def with_style(document: bytes, site_url: str) -> bytes:
    """Returns an Atom or RSS document with the style sheet (W3C, Associating Style Sheets with XML documents 1.0)."""
    href = urlsplit(site_url).path + static_path("feed.css")
    return document.replace(
        _DECLARATION, _DECLARATION + f'<?xml-stylesheet type="text/css" href="{href}"?>\n'.encode(), 1
    )
