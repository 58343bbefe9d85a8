"""Sources: RSS, Atom and JSON feeds that the service polls, or subscribes to, and publishes as items."""

from smartfeeds.app.feature import Feature

POLLING = Feature("polling")
