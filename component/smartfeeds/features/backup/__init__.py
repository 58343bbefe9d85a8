"""Backup, restore, and copies from one store to another."""

from smartfeeds.app.feature import Feature

BACKUP = Feature("backup")
