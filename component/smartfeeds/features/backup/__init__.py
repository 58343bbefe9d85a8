"""Backup, restore, and copies from one store to another."""

from smartfeeds.app.feature import Feature

BACKUP = Feature(
    "backup",
    commands={
        "backup": "smartfeeds.features.backup.command",
        "restore": "smartfeeds.features.backup.restore",
    },
    extends={"db": "smartfeeds.features.backup.command:with_copy"},
)
