"""An rssCloud for every feed, with its three protocols (rsscloud.md)."""

from smartfeeds.app.feature import Feature

CLOUD = Feature("cloud", needs=("callbacks",), commands={"cloud": "smartfeeds.features.cloud.command"})
