"""The logs that a failed test shows (support/logs.py)."""

from pathlib import Path

from support.logs import Logs
from support.unprivileged import unprivileged_folder


def test_failed_test_shows_what_was_written_while_it_ran(tmp_path: Path) -> None:
    old, silent, new, gone = (tmp_path / name for name in ("old.log", "silent.log", "new.log", "gone/x.log"))
    gone.parent.mkdir()
    for path in (old, silent, gone):
        path.write_text("before\n")
    logs = Logs()
    logs.follow("Prosody", [old, silent])
    logs.follow("PostgreSQL", [gone])
    gone.unlink()
    gone.parent.rmdir()
    logs.begin()
    logs.follow("smartfeeds", [new])
    with old.open("a") as file:
        file.write("during\n")
    new.write_text("begun\nended\n")

    assert logs.sections() == [(f"log of Prosody: {old}", "during"), (f"log of smartfeeds: {new}", "begun\nended")]


def test_unreadable_log_does_not_hide_the_failure(tmp_path: Path) -> None:
    closed = tmp_path / "closed" / "prosody.log"
    closed.parent.mkdir()
    logs = Logs()
    logs.follow("Prosody", [closed])
    logs.begin()
    closed.write_text("during\n")
    closed.parent.chmod(0)
    with unprivileged_folder() as folder:
        open_log = folder / "open.log"
        open_log.write_text("during\n")
        logs.follow("smartfeeds", [open_log])
        sections = logs.sections()
    closed.parent.chmod(0o700)

    assert sections == [
        (f"log of Prosody: {closed}", "cannot be read: Permission denied"),
        (f"log of smartfeeds: {open_log}", "during"),
    ]
