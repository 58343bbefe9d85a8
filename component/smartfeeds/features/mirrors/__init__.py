"""Mirrors: feeds that two services keep in step (FeedSync, SSE)."""

from smartfeeds.app.feature import Feature

MIRRORS = Feature("mirrors")
