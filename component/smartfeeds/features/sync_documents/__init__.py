"""FeedSync and SSE documents: complete feeds, and merging of files."""

from smartfeeds.app.feature import Feature

SYNC_DOCUMENTS = Feature("sync_documents")
