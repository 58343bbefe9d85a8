"""A process without the feature that divides work between processes."""

from typing import cast

import pytest

from smartfeeds.app import group
from smartfeeds.app.group import Group, Spawn, make_group
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.delivery.letters import LetterTopic
from smartfeeds.errors import ConfigError
from smartfeeds.service.feeds import FeedService
from support.component import settings


def made(url: str) -> Group:
    return make_group(settings(1, url), cast(FeedService, None), ChangeNotifier(), cast(Spawn, None))


@pytest.fixture(autouse=True)
def no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "FEATURES", ())


def test_process_is_alone() -> None:
    alone = made("sqlite:///feeds.db")
    alone.letters.share(LetterTopic("news"), b"nobody reads this")
    assert not alone.letters.has_others() and alone.may_connect is None and alone.has_lease()


def test_database_that_others_may_serve_is_refused() -> None:
    """Nothing would keep a second process from it, and each item would be sent twice."""
    with pytest.raises(ConfigError, match=r"the database .*feeds may be served by several processes, and no feature"):
        made("postgresql://localhost/feeds")
