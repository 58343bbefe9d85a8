"""Prefetched enclosures: files that entries link to, fetched before somebody asks."""

from smartfeeds.app.feature import Feature

PREFETCH = Feature("prefetch")
