"""Writing over HTTP: the editor, files, Micropub and Markdown."""

from smartfeeds.app.feature import Feature

AUTHORING = Feature("authoring")
