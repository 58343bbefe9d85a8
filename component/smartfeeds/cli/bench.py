"""`smartfeeds bench`: runs the benchmarks of a checkout against the pubsub services of Prosody and ejabberd."""

import os
import subprocess
import sys
from pathlib import Path

import click

from smartfeeds.errors import ConfigError

_TESTS = Path(__file__).parents[3] / "tests"


@click.command("bench", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench_command(arguments: tuple[str, ...]) -> None:
    """Measure publishing, fan-out, pages and subscribing on this machine, and the same for Prosody and ejabberd.

    The command needs a checkout of the project, as `make bench` does. ARGUMENTS go to the benchmark (--quick: a short
    run).
    """
    if not (_TESTS / "bench" / "__main__.py").exists():
        raise ConfigError(f"no benchmarks in {_TESTS}; run make bench in a checkout of the project")
    path = os.pathsep.join([str(_TESTS), str(_TESTS.parent / "component")])
    process = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "bench", *arguments], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    click.get_current_context().exit(process.returncode)
