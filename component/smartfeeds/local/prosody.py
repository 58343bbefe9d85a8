"""A Prosody on the loopback interface, without TLS, with its accounts in its folder."""

import os
import subprocess
from pathlib import Path

from smartfeeds.errors import LinkError
from smartfeeds.local.process import HOST, LocalAccount, LocalServer

_CONFIG = """\
{root}daemonize = false
data_path = "{folder}/data"
certificates = "{folder}/certs"
interfaces = {{ "{host}" }}
component_interfaces = {{ "{host}" }}
c2s_ports = {{ {client_port} }}
component_ports = {{ {component_port} }}
s2s_ports = {{ }}
http_ports = {{ }}
https_ports = {{ }}
modules_enabled = {{ "roster", "saslauth", "carbons", "disco", "ping", "version", "time", "posix" }}
modules_disabled = {{ "s2s", "tls", "http", "offline" }}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
log = {{ info = "{folder}/prosody.log" }}
VirtualHost "{domain}"
{components}"""


class Prosody(LocalServer):
    """Prosody in the foreground. Accounts and rosters stay in `folder`/data."""

    software = "Prosody"
    program = "prosody"
    packages = "prosody lua-unbound"

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The log of Prosody and its output."""
        return (self.folder / "output.log", self.folder / "prosody.log")

    @property
    def config_file(self) -> Path:
        """The configuration that `start` writes."""
        return self.folder / "prosody.cfg.lua"

    def write_config(self) -> None:
        """Writes the configuration file and creates the data folder."""
        for name in ("data", "certs"):
            (self.folder / name).mkdir(exist_ok=True)
        blocks = [f'Component "{name}"\n    component_secret = "{key}"\n' for name, key in self.components.items()]
        self.config_file.write_text(
            _CONFIG.format(
                root="run_as_root = true\n" if os.geteuid() == 0 else "",
                folder=self.folder,
                host=HOST,
                client_port=self.client_port,
                component_port=self.component_port,
                domain=self.domain,
                components="".join(blocks),
            )
        )

    def command(self, program: str) -> list[str]:
        """Returns the command line of Prosody in the foreground."""
        return [program, "--config", str(self.config_file), "-F"]

    def account(self, name: str, password: str = "secret") -> LocalAccount:  # noqa: S107 - a throw-away account
        """Creates a client account with prosodyctl. An existing account gets this password."""
        result = subprocess.run(  # noqa: S603 - a fixed command line
            ["/usr/bin/prosodyctl", "--config", str(self.config_file), "register", name, self.domain, password],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise LinkError(
                f"prosodyctl cannot create the account {name}: {result.stdout.strip()} {result.stderr.strip()}"
            )
        return LocalAccount(f"{name}@{self.domain}", password)
