"""Presence: whom a notification can reach, and delivery by presence (XEP-0060 4.2)."""

from smartfeeds.app.feature import Feature

PRESENCE = Feature("presence")
