"""Documents in other formats than Atom: RSS, JSON Feed, OPML, ESS and Activity Streams."""

from smartfeeds.app.feature import Feature

DOCUMENTS = Feature("documents", commands={"convert": "smartfeeds.features.documents.command"})
