"""The logs that a failed test shows (support/logs.py)."""

from pathlib import Path

from support.logs import Logs


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
