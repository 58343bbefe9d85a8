"""Moving in: the nodes of Prosody, ejabberd and sat-pubsub, from the data that they have stored (docs/moving-in.md)."""

from smartfeeds.app.feature import Feature

MOVING_IN = Feature("moving_in", extends={"import": "smartfeeds.features.moving_in.command:with_from"})
