"""Callbacks: addresses that get changes by HTTP, and the consumers that call them. WebSub and rssCloud use it."""

from smartfeeds.app.feature import Feature

CALLBACKS = Feature("callbacks")
