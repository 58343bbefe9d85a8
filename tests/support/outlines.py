"""Reads subscription lists, as a feed reader does."""

from collections.abc import Iterator

from smartfeeds.formats.opml import ADDRESS, ListedFeed, OutlineDocument, flattened


def listed_feeds(document: OutlineDocument) -> Iterator[ListedFeed]:
    """The feeds of a subscription list, at whatever depth of the tree."""
    for _, outline in flattened(document.outlines):
        values = outline.attributes
        if "xmlUrl" in values:
            yield ListedFeed(
                title=outline.text,
                xml_url=values["xmlUrl"],
                html_url=values.get("htmlUrl", ""),
                xmpp=values.get(ADDRESS, ""),
                description=values.get("description", ""),
                language=values.get("language", ""),
            )


def opml(*outlines: str) -> bytes:
    """A subscription list with these outlines."""
    return f'<opml version="2.0"><head><title>Mine</title></head><body>{"".join(outlines)}</body></opml>'.encode()
