"""tools/setup installs what the purpose needs, and nothing twice."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# Stands for Python: `-c` checks succeed, `-m venv DIR` makes a folder whose Python is this program, and the arguments
# of each installation are written to a file.
PYTHON = """\
#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip install "*) echo "$*" >> installed.txt ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """A checkout with the files that tools/setup reads, and a Python that only notes what it would install."""
    for name in ("tools/setup", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    python = tmp_path / "bin/python3.11"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def installed(checkout: Path, purpose: str) -> list[str]:
    """The files with pins that tools/setup installs for the purpose."""
    written = checkout / "installed.txt"
    written.write_text("")
    python = str(checkout / "bin/python3.11")
    subprocess.run(["tools/setup", purpose], cwd=checkout, env={**os.environ, "PYTHON": python}, check=True)
    return [line.split()[-1] for line in written.read_text().splitlines() if "-r" in line.split()]


def test_running_needs_the_pins_for_running_only(checkout: Path) -> None:
    assert installed(checkout, "run") == ["requirements.lock"]
    assert installed(checkout, "run") == []


def test_developing_after_running_adds_what_is_missing(checkout: Path) -> None:
    assert installed(checkout, "run") == ["requirements.lock"]
    assert installed(checkout, "lint") == ["requirements-dev.lock"]
    assert installed(checkout, "lint") == []
    assert installed(checkout, "run") == []


def test_new_pins_are_installed(checkout: Path) -> None:
    installed(checkout, "run")
    after = (checkout / ".venv/.ready").stat().st_mtime + 1
    os.utime(checkout / "requirements.lock", (after, after))

    assert installed(checkout, "run") == ["requirements.lock"]
