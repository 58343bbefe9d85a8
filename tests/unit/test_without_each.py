"""`tools/without --each` reports why pytest failed, in a project whose Python is a script."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COLLECT = """[ -z "$WRITE_NEEDS" ] || { echo '{"tests/unit/test_one.py": [[]]}' > "$WRITE_NEEDS"; exit; }"""


@pytest.mark.parametrize(
    ("script", "report"),
    [
        ("echo 'ImportError: no module one'; exit 2", "collecting the tests failed\nImportError: no module one\n"),
        (f"{COLLECT}; exit 3", "1 of 1: the kernel: no output\n\n1 of 1 groups of tests failed\n"),
        (f"{COLLECT}; echo '1 failed'; exit 1", "1 of 1: the kernel: 1 failed\n1 failed\n\n1 of 1 groups"),
        (f"{COLLECT}; echo '1 passed'", "1 of 1: the kernel: 1 passed\neach test runs with what it needs\n"),
    ],
)
def test_each_reports_what_pytest_prints(tmp_path: Path, root: Path, script: str, report: str) -> None:
    for name in ("component/smartfeeds/features/__init__.py", "tests/unit/test_one.py", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".venv/bin/python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(root / "tools/without", tmp_path / "tools")

    run = subprocess.run(
        [sys.executable, tmp_path / "tools/without", "--each"], capture_output=True, text=True, check=False
    )

    assert report in f"{run.stderr}{run.stdout}"
    assert run.returncode == ("passed" not in report)
