"""`smartfeeds demo`: a server with an example feed, and two demonstrations."""

from smartfeeds.app.feature import Feature

DEMO = Feature("demo", needs=("accounts", "conflicts"), commands={"demo": "smartfeeds.features.demo.commands"})
