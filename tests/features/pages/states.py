"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import ENTRIES, LOCAL, PAGES, WORK

STATES = {
    "image_requests.Images": LOCAL,  # bodies of other servers, for as long as those permit
    "feed_page.FeedPageWriter": PAGES,
    "river_page.RiverPages": PAGES,
    "writer.HtmlWriter": ENTRIES,
    "sanitise._Rewriter": WORK,
}

PURE = {
    "api_docs": {"self._page"},
    "feed_page": {"_code"},
    "frame": {"_environment"},
    "sanitise": {"_cleaner"},
    "static_files": {"static_files"},
}
