"""tools/copyright.py: the copyright file of the Debian package covers every bundled package and library."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SITE = Path(sysconfig.get_path("purelib"))


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def library(root: Path, tmp_path: Path) -> Path:
    """A folder with the pinned packages, as the package has it: links to those of this environment."""
    lock = (root / "requirements.lock").read_text("utf-8")
    pinned = {canonical(name) for name in re.findall(r"(?m)^([A-Za-z0-9_.-]+)==", lock)} - {"setuptools"}
    folder = tmp_path / "library"
    folder.mkdir()
    for info in SITE.glob("*.dist-info"):
        if canonical(info.name.partition("-")[0]) in pinned:
            tops = {line.split(",")[0].split("/")[0] for line in (info / "RECORD").read_text("utf-8").splitlines()}
            for top in tops - {"..", "__pycache__"}:
                if not (folder / top).exists():
                    (folder / top).symlink_to(SITE / top)
    assert len(list(folder.glob("*.dist-info"))) == len(pinned)
    return folder


def write(root: Path, library: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "tools/copyright.py", str(library)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_every_file_has_a_holder_and_a_licence_with_its_text(root: Path, library: Path) -> None:
    done = write(root, library)
    assert done.returncode == 0, done.stderr
    head, *paragraphs = done.stdout.split("\n\n")
    patterns = [name for text in paragraphs for name in re.findall(r"(?m)^(?:Files: | {7})(\S+)$", text)]

    assert head.startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/")
    for paragraph in paragraphs:
        assert re.search(r"(?m)^Copyright: \S.+$", paragraph), paragraph[:200]
        assert re.search(r"(?m)^License: (?!see below)\S.*\n ", paragraph), paragraph[:200]
    covered = [pattern.removeprefix("usr/lib/smartfeeds/").removesuffix("/*") for pattern in patterns]
    expected = [path.name for path in library.iterdir() if path.suffix not in (".libs", ".pth")]
    assert [name for name in expected if name not in covered] == []
    shared = [f"{path.parent.name}/{path.name}" for path in library.glob("*.libs/*")]
    assert shared and [name for name in shared if name not in covered] == []
    assert "LGPL-3.0-only" in done.stdout and "contains libxml2, libxslt (MIT)" in done.stdout


def test_unknown_library_and_a_missing_licence_are_refused(root: Path, tmp_path: Path) -> None:
    info, libraries = tmp_path / "thing-1.0.dist-info", tmp_path / "thing.libs"
    info.mkdir()
    libraries.mkdir()
    (info / "METADATA").write_text("Name: thing\nVersion: 1.0\nLicense: MIT\n")
    (info / "RECORD").write_text("thing/__init__.py,,\n")
    assert "thing-1.0.dist-info has no text of its licence" in write(root, tmp_path).stderr
    (info / "LICENSE").write_text("Copyright (c) 2026 Somebody\n\nPermission is granted.\n")
    assert write(root, tmp_path).returncode == 0
    (libraries / "libnew-1.so").touch()
    assert "the licence of libnew-1.so is not known" in write(root, tmp_path).stderr
