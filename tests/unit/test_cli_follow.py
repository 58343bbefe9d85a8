"""What `smartfeeds follow` prints beside the changes."""

import logging
from collections.abc import Iterator

import pytest

from smartfeeds.cli.follow import _log_to_stderr

NAMES = ("smartfeeds.client", "slixmpp")


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate


def test_follow_prints_each_warning_once_and_leaves_other_handlers(capsys: pytest.CaptureFixture[str]) -> None:
    """However often the command runs in one process."""
    records: list[logging.LogRecord] = []
    handler = logging.NullHandler()
    handler.handle = records.append  # type: ignore[method-assign, assignment]
    for name in NAMES:
        logging.getLogger(name).addHandler(handler)

    _log_to_stderr()
    _log_to_stderr()
    logging.getLogger("smartfeeds.client").warning("%s does not answer", "feeds.example.org")
    logging.getLogger("smartfeeds.client").info("nothing to know")
    logging.getLogger("slixmpp").warning("an internal matter")

    assert capsys.readouterr().err == "smartfeeds: feeds.example.org does not answer\n"
    assert [record.getMessage() for record in records] == ["feeds.example.org does not answer", "an internal matter"]
