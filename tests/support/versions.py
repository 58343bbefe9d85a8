"""Entries with sync data, as a peer publishes them."""

from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS
from smartfeeds.sync.lexis import SSE_NS

B1 = "feeds.b.example%2Fbob@b.example"
C1 = "feeds.c.example%2Fcarol@c.example"


def entry_with(sync: str, title: str = "", content: str = "") -> str:
    """An Atom entry with markup at its end."""
    text = f"<content type='html'>{content}</content>" if content else ""
    return f"<entry xmlns='{ATOM_NS}'><title>{title}</title>{text}{sync}</entry>"


def version(*by: str, title: str = "", sync_id: str = "a", deleted: bool = False, content: str = "") -> str:
    """An item of FeedSync that was changed by these endpoints, the newest first, a second apart."""
    count = len(by)
    history = "".join(
        f"<x:history sequence='{count - k}' when='2026-01-01T00:00:{count - k:02}Z' by='{name}'/>"
        for k, name in enumerate(by)
    )
    mark = " deleted='true'" if deleted else ""
    sync = f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='{sync_id}' updates='{count}'{mark}>{history}</x:sync>"
    return entry_with(sync, title, content)


def sse_version(*by: str, title: str = "", sync_id: str = "a") -> str:
    """The same of SSE."""
    count = len(by)
    top, *older = [f"when='Thu, 01 Jan 2026 00:00:{count - k:02} GMT' by='{name}'" for k, name in enumerate(by)]
    history = f"<x:history {top}>{''.join(f'<x:update {update}/>' for update in older)}</x:history>"
    return entry_with(f"<x:sync xmlns:x='{SSE_NS}' id='{sync_id}' version='{count}'>{history}</x:sync>", title)
