"""`smartfeeds bench`: the benchmarks of a checkout, beside the pubsub of Prosody and ejabberd."""

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
    """Measure this machine: publishing, fan-out, pages, subscribing; ours beside Prosody's and ejabberd's own.

    Works in a checkout of the project, as `make bench` does; ARGUMENTS go to the benchmark (--quick for a short run).
    """
    if not (_TESTS / "bench" / "__main__.py").exists():
        raise ConfigError("the benchmarks are in the project's sources: run make bench in a checkout")
    path = os.pathsep.join([str(_TESTS), str(_TESTS.parent / "component")])
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "bench", *arguments], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    click.get_current_context().exit(done.returncode)
