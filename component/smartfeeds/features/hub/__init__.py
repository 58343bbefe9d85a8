"""A WebSub hub for every feed (websub.md)."""

from smartfeeds.app.feature import Feature

HUB = Feature("hub", needs=("callbacks",), commands={"hub": "smartfeeds.features.hub.command"})
