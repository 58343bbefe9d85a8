"""What `smartfeeds follow` prints beside the changes."""

import logging

import pytest

from smartfeeds.cli.follow import _warnings_on_stderr


def test_follow_prints_each_warning_once_and_restores_the_loggers(capsys: pytest.CaptureFixture[str]) -> None:
    """Handlers of other code stay and get their records, during the command and after it."""
    records: list[logging.LogRecord] = []
    handler = logging.NullHandler(logging.WARNING)  # other tests may have set the root logger to info
    handler.handle = records.append  # type: ignore[method-assign, assignment]
    loggers = [logging.getLogger(name) for name in ("smartfeeds.client", "slixmpp")]
    for logger in loggers:
        logger.addHandler(handler)
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]

    for _ in range(2):
        with _warnings_on_stderr():
            loggers[0].warning("%s does not answer", "feeds.example.org")
            loggers[0].info("nothing to know")
            loggers[1].warning("an internal matter")
    after = [(logger.handlers[:], logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.removeHandler(handler)

    assert capsys.readouterr().err == "smartfeeds: feeds.example.org does not answer\n" * 2
    assert [record.getMessage() for record in records] == [
        "feeds.example.org does not answer",
        "an internal matter",
    ] * 2
    assert after == before
