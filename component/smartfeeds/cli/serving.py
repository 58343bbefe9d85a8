"""`smartfeeds run` and `smartfeeds status`: their options. The service is imported when it starts."""

from pathlib import Path

import click

from smartfeeds.cli.common import FILE, config_option, json_option
from smartfeeds.console import Exit


@click.command("run")
@config_option
@click.option(
    "--status",
    type=FILE,
    help="A file for the state of the service, which smartfeeds status reads. Default: beside a database of SQLite.",
)
def run_command(config: Path | None, status: Path | None) -> None:
    """Run the service until SIGTERM or Ctrl-C, or until an admin stops it. A second signal ends it at once.

    If the server is unreachable, if another process uses the name, or if PostgreSQL is away, the service retries for
    ever. It exits with an error only if the configuration or the database cannot be used.
    """
    from smartfeeds.cli.run import run_service

    if run_service(config, status):
        click.get_current_context().exit(Exit.RESTART)


@click.command("status")
@click.argument("file", type=FILE, required=False)
@config_option
@json_option
def status_command(file: Path | None, config: Path | None, *, as_json: bool) -> None:
    """Print whether the service runs and is connected; exit code 1 if it is not.

    FILE is that of smartfeeds run --status. By default it is beside the database of the configuration.
    """
    from smartfeeds.cli.run import default_status_file, print_status, read_status

    running, state = read_status(file or default_status_file(config))
    print_status(running, state, as_json=as_json)
