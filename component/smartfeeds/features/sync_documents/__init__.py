"""FeedSync and SSE documents on the command line: `merge`, `import --sync` and `export --sync`."""

from smartfeeds.app.feature import Feature

SYNC_DOCUMENTS = Feature(
    "sync_documents",
    commands={"merge": "smartfeeds.features.sync_documents.command"},
    extends={
        "import": "smartfeeds.features.sync_documents.options:with_sync_import",
        "export": "smartfeeds.features.sync_documents.options:with_sync_export",
    },
)
