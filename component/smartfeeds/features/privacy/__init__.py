"""Personal data: export, erasure, and blocked addresses."""

from smartfeeds.app.feature import Feature

PRIVACY = Feature("privacy")
