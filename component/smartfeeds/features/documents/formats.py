"""The formats of the feature: each has a module, and one line here."""

from smartfeeds.features.documents.ess import ESS
from smartfeeds.features.documents.json_feed import JSON_FEED
from smartfeeds.features.documents.rss092 import RSS_092
from smartfeeds.formats.document_format import DocumentFormat

FORMATS: tuple[DocumentFormat, ...] = (RSS_092, JSON_FEED, ESS)
