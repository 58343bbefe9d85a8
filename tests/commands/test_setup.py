"""tools/setup installs what the purpose needs, and nothing twice."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# Stands for Python: `-c` checks succeed, `-m venv DIR` makes a folder whose Python is this program, and the arguments
# of each installation are written to a file. Each installation prints a warning.
PYTHON = """\
#!/bin/sh
case "$*" in
    --version) echo Python 3.11.2 ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip install "*) echo "$*" >> installed.txt; echo "WARNING: you run this as root" >&2; exit ${FAILURE:-0} ;;
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


def set_up(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHON": str(checkout / "bin/python3.11"), **environment}
    return subprocess.run(["tools/setup", "run"], cwd=checkout, env=given, capture_output=True, text=True, check=False)


def test_progress_is_shown_without_the_warnings_of_the_package_manager(checkout: Path) -> None:
    done = set_up(checkout)
    pins = (checkout / "requirements.lock").read_text().count("==")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "smartfeeds: creating .venv with Python 3.11.2",
        f"smartfeeds: installing the {pins} packages of requirements.lock",
        "smartfeeds: installing smartfeeds itself",
    ]
    assert set_up(checkout).stderr == ""


def test_failure_shows_all_that_the_package_manager_has_printed(checkout: Path) -> None:
    done = set_up(checkout, FAILURE="7")

    assert done.returncode == 1
    assert "WARNING: you run this as root\nsmartfeeds: this command failed: .venv/bin/python -m pip" in done.stderr
    assert not (checkout / ".venv/.ready").exists()


def test_old_python_is_named_before_anything_is_installed(checkout: Path) -> None:
    python = checkout / "bin/python3.11"
    python.write_text('#!/bin/sh\n[ "$1" != -c ] || exit 1\necho Python 3.10.12\n')
    done = set_up(checkout)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"smartfeeds: Python 3.11 or newer is needed, and {python} is Python 3.10.12; install a newer one, "
        "for example python3.11 and python3.11-venv, and name it: PYTHON=python3.11 make run\n"
    )
    assert not (checkout / ".venv").exists()
