"""Enclosures that were loaded in advance, over HTTP: `/enclosures/NAME/ID` (PRE-032, PRE-033)."""

from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.local_files import GetEnclosure
from smartfeeds.features.prefetch.local_links import LOCAL
from smartfeeds.http.encode import FeedLinks
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.http.stored_files import FileReplies, file_operation
from smartfeeds.parts import Parts

GET_ENCLOSURE = file_operation("getEnclosure", "An enclosure that was loaded in advance, or a part of it")


def _handlers(tools: SiteTools) -> FileReplies:
    folder = tools.parts.find(EnclosureFolder)
    return FileReplies(tools.handle, tools.domain, None if folder is None else folder.complete, GetEnclosure)


def _links(links: FeedLinks, parts: Parts) -> FeedLinks:
    return links if parts.find(EnclosureFolder) is None else links._replace(local=LOCAL)


HTTP = HttpSide(
    (Route("GET", "/enclosures/{name}/{id}", "enclosures", GET_ENCLOSURE, lambda h: h.get),), _handlers, links=_links
)
