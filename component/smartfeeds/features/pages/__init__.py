"""Pages for browsers, the river and the search."""

from smartfeeds.app.feature import Feature

PAGES = Feature("pages")
