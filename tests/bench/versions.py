"""Earlier versions of the service, from their commits, each in a folder of its own (`make clean` removes them)."""

import subprocess
from pathlib import Path

from bench.targets import ROOT
from bench.wire import BenchError

FIRST = "0a3f4197c485eca3512052e24fcfaaa9933f8433"
FOLDER = ROOT / "build" / "versions"


def tree(commit: str, repository: Path = ROOT, folder: Path = FOLDER) -> Path:
    """Returns the folder with the package of a version, which is written once.

    Each version runs on the libraries of the present one, whose pins have not changed since the first version: so only
    the code of the service differs. Raises BenchError if this copy of the project has no such commit.
    """
    name = _git(repository, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").decode().strip()
    place = folder / name[:12]
    if not place.exists():
        partial = place.with_suffix(".part")
        partial.mkdir(parents=True, exist_ok=True)
        package = _git(repository, "archive", name, "component")
        subprocess.run(["tar", "-x", "-C", str(partial)], input=package, check=True)
        partial.rename(place)
    return place / "component"


def _git(repository: Path, *arguments: str) -> bytes:
    try:
        command = ("git", "-C", str(repository), *arguments)
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode().strip() or str(error)
        raise BenchError(f"this copy of the project does not have the version: {reason}") from None
