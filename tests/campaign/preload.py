"""A process with the modules of the service loaded, which forks a new service for each line that it reads.

Loading takes two seconds, and a campaign starts the service some thousand times. A fork starts it in a tenth of that
time and runs the same code: `smartfeeds run`. A line is JSON: `config`, `log`, and `defect` for negative controls. The
answer is the process id. A line with `reap` waits for the end of that process and returns its exit code.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from campaign import moved_clock
from campaign.defects import DEFECTS
from smartfeeds.cli import main


def serve() -> None:
    """Reads lines until the end of the input."""
    for module in ("smartfeeds.cli.run", "smartfeeds.app.lifecycle"):
        import_module(module)
    for line in sys.stdin:
        order = json.loads(line)
        if "reap" in order:
            _, status = os.waitpid(order["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                _run(order)
        print(answer, flush=True)


def _run(order: dict[str, Any]) -> None:
    os.setsid()
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for file, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(file, target)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the standard files of the new process
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.environ.update(order.get("environment", {}))
    if moved_clock.VARIABLE in os.environ:
        moved_clock.install(Path(os.environ[moved_clock.VARIABLE]))
    if order.get("defect"):
        DEFECTS[order["defect"]]()
    try:
        main(["run", "--config", order["config"]], standalone_mode=True)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    os._exit(0)


if __name__ == "__main__":
    serve()
