"""The tables that the kernel and the features bring together."""

from collections import Counter

from smartfeeds.app import sides
from smartfeeds.features import FEATURES
from smartfeeds.xmpp.resources import commands_of


def test_no_feature_replaces_what_another_one_brings() -> None:
    """Joined tables keep the last value of a key, so a second one would replace the first silently."""
    own = [side.xmpp for side in (feature.service() for feature in FEATURES) if side.xmpp is not None]
    every = [sides.KERNEL, *own]
    commands = [*commands_of(sides.all_resources()), *(command for side in every for command in side.commands)]
    keys = (
        [key for side in every for key in side.readers],
        [kind for side in every for kind in side.encoders],
        [command.name for command in commands],
        [name for side in every for name in side.features],
        [name for side in every for name in side.node_features],
        [command.name for table in sides.chat_tables() for command in table.commands],
        [row.name for feature in FEATURES for row in feature.commands],
    )

    assert all(keys)
    assert [key for kind in keys for key, count in Counter(kind).items() if count > 1] == []
