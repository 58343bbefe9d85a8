"""`smartfeeds init`: writes a configuration with a new secret, and prints the lines for the XMPP server and the next
steps."""

import json
import secrets
import shlex
from pathlib import Path
from typing import Final

import click

from smartfeeds.cli.common import DEFAULT_CONFIG, FILE, bare_jid, refuse_devices
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import print_err
from smartfeeds.core.jid import parse_jid
from smartfeeds.errors import ConfigError

_LISTEN: Final = "127.0.0.1:8280"
_NODE: Final = "news"  # the feed of the next steps
_FILE: Final = """\
# smartfeeds for {domain}. All other keys and their defaults: config/smartfeeds.toml of the project, docs/operator.md.

[component]
jid = "{domain}"
secret = "{secret}"
host = "127.0.0.1"
port = {port}

[store]
url = {store_url}

[http]
# Address of the HTTP server; empty: no HTTP. For public access put a web server with TLS in front of it.
listen = "{listen}"
# base_url = "https://feeds.example.org"

[pubsub]
# Users who may create nodes: bare JIDs, domains, or "*" for everybody.
creators = [{creators}]
# Bare JIDs with all rights on all nodes.
admins = [{admins}]
"""

_PROSODY: Final = """\
Component "{domain}"
    component_secret = "{secret}"
"""

_EJABBERD: Final = """\
listen:
  -
    port: {port}
    ip: "127.0.0.1"
    module: ejabberd_service
    access: all
    shaper: none
    global_routes: false
    hosts:
      "{domain}":
        password: "{secret}"
"""

_NEXT: Final = """\
Then: {doctor}
      {run}

Meanwhile, in another terminal:

1. A feed:     {node}
2. A sign-in:  {token}
               Sign in with this token at {site}/login
3. A page:     {site}/feeds/{name}/
"""


@click.command("init")
@click.argument("domain")
@click.option("--output", type=FILE, default=Path(DEFAULT_CONFIG), show_default=True, help="The file to write.")
@click.option("--port", type=click.IntRange(1, 65535), default=5347, show_default=True, help="The component port.")
@click.option(
    "--database",
    type=FILE,
    default=Path("./smartfeeds.db"),
    show_default=True,
    help="The database. A relative path is relative to the configuration file.",
)
@click.option(
    "--admin", type=bare_jid, metavar="JID", help="The bare JID of an administrator, such as yours. Default: none."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init_command(domain: str, output: Path, port: int, database: Path, admin: str | None, *, force: bool) -> None:
    """Write a configuration with a new secret for the component DOMAIN, such as feeds.example.org.

    The command also prints the lines that Prosody or ejabberd needs, and the next steps. Only you can read the file.
    """
    jid = parse_jid(domain)
    if jid is None or jid.local or jid.resource:
        raise click.BadParameter(f'"{domain}" is not a domain such as feeds.example.org', param_hint="DOMAIN")
    if admin is not None and "@" not in admin:
        raise click.BadParameter(f'"{admin}" is not the address of a person, such as alice@{jid}', param_hint="--admin")
    secret = secrets.token_urlsafe(24)
    parent = jid.domain.partition(".")[2]
    values = {
        "domain": jid.domain,
        "secret": secret,
        "port": port,
        "store_url": json.dumps(f"sqlite:///{database}", ensure_ascii=False),
        "creators": f'"{parent}"' if parent else "",
        "admins": json.dumps(admin, ensure_ascii=False) if admin else "",
        "listen": _LISTEN,
    }
    _write(output, _FILE.format(**values), force=force)

    click.echo(f"Wrote {output}.\n\nProsody: add this to prosody.cfg.lua, then restart Prosody:\n")
    click.echo(_PROSODY.format(**values))
    if port != 5347:
        click.echo(f"and, in its global part:\n\ncomponent_ports = {{ {port} }}\n")
    click.echo("ejabberd: add this to ejabberd.yml, to the listen section that is there, then restart ejabberd:\n")
    click.echo(_EJABBERD.format(**values))
    you = admin or f"you@{parent or jid.domain}"
    click.echo(_next_steps(output, you), nl=False)
    if admin is None:
        click.echo(f"\nReplace {you} by your address. With --admin, init makes you an administrator.")


def _next_steps(output: Path, owner: str) -> str:
    """Returns the commands to start the service, and for the first feed, whose owner is the administrator."""
    config = [] if output == Path(DEFAULT_CONFIG) else ["--config", str(output)]

    def line(*words: str) -> str:
        return shlex.join(["smartfeeds", *words, *config])

    return _NEXT.format(
        doctor=line("doctor"),
        run=line("run"),
        node=line("node", "create", _NODE, "--owner", owner),
        token=line("token", "add", "*", "--jid", owner, "--scope", "admin"),
        site=f"http://{_LISTEN}",
        name=_NODE,
    )


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write the file in one step with mode 0600. Raises ConfigError if it exists or cannot be written."""
    refuse_devices(path)
    if path.exists() and not force:
        raise ConfigError(f"{path} exists and contains a secret; choose another --output, or replace it with --force")
    try:
        with whole_file(path, private=True) as file:
            file.write(text.encode())
    except ConfigError:
        print_err("Nothing was written.")
        raise
