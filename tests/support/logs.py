"""The lines that servers and processes wrote to their log files while a test ran. A failed test shows it."""

from collections.abc import Iterable
from pathlib import Path

_MOST_LINES = 200


class Logs:
    """The log files of everything that tests of this process have started."""

    def __init__(self) -> None:
        self._names: dict[Path, str] = {}
        self._begins: dict[Path, int] = {}

    def follow(self, name: str, paths: Iterable[Path]) -> None:
        """Adds the log files of a server or a process, which may not exist yet."""
        self._names |= dict.fromkeys(paths, name)

    def begin(self) -> None:
        """A test begins: what the files have by now is not shown. Forgets files whose folders were removed."""
        self._names = {path: name for path, name in self._names.items() if path.parent.exists()}
        self._begins = {path: path.stat().st_size for path in self._names if path.exists()}

    def sections(self) -> list[tuple[str, str]]:
        """The title and the text of each file that has grown since the test began.

        The report of a failed test calls this function, so it raises nothing for a file that cannot be read.
        """
        sections = []
        for path, name in self._names.items():
            try:
                text = path.read_bytes()[self._begins.get(path, 0) :].decode("utf-8", "replace")
            except FileNotFoundError:
                continue
            except OSError as error:  # the process may act as an ordinary user (support/unprivileged.py)
                text = f"cannot be read: {error.strerror}"
            if text:
                sections.append((f"log of {name}: {path}", "\n".join(text.splitlines()[-_MOST_LINES:])))
        return sections


LOGS = Logs()
