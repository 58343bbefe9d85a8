"""Accounts: bearer tokens, sessions and the sign-in by XMPP."""

from smartfeeds.app.feature import Feature

ACCOUNTS = Feature("accounts")
