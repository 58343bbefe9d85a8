"""Attachments of items (XEP-0470)."""

from smartfeeds.app.feature import Feature

ATTACHMENTS = Feature("attachments")
