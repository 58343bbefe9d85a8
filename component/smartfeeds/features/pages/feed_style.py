"""Atom and RSS documents as a browser shows them: with a style sheet that explains the feed.

Only requests that prefer HTML get it, so the documents of feed readers stay as they are. Chromium shows the media types
of feeds as plain text and Firefox downloads them, so the styled document is `application/xml`, which both show.
"""

from urllib.parse import urlsplit

from smartfeeds.features.pages.static_files import feed_style, static_path
from smartfeeds.formats.representation import Representation
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import ATOM, HTML, RSS, choose, languages
from smartfeeds.texts import choose_language

STYLED = frozenset({ATOM, RSS})
STYLED_HEADERS = {
    # The document loads the style sheet and nothing else.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; frame-ancestors 'none'",
    "Vary": "Accept, Accept-Encoding, Accept-Language, Authorization",
}
_DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def style_language(call: HttpCall, form: Representation) -> str:
    """The language of the style sheet of a document for a browser, which prefers HTML to the type of the document; ""
    for other clients, which get none."""
    if form not in STYLED or choose(call.header("Accept"), (form, HTML)) is not HTML:
        return ""
    return choose_language(languages(call.header("Accept-Language")))


def with_style(document: bytes, site_url: str, language: str) -> bytes:
    """Returns an Atom or RSS document with the style sheet (W3C, Associating Style Sheets with XML documents 1.0)."""
    href = urlsplit(site_url).path + static_path(feed_style(language))
    return document.replace(
        _DECLARATION, _DECLARATION + f'<?xml-stylesheet type="text/css" href="{href}"?>\n'.encode(), 1
    )
