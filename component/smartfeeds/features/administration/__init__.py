"""Administration: lists of what the service has, and actions, by ad-hoc commands, over HTTP and in pages."""

from smartfeeds.app.feature import Feature

ADMINISTRATION = Feature("administration")
