"""An ejabberd for tests and benchmarks: loopback only, no TLS, anonymous login, no epmd left behind."""

import json
from pathlib import Path

from smartfeeds.errors import ConfigError
from smartfeeds.local.process import HOST, LocalAccount, LocalServer


def _libraries() -> str:
    """The folder in which Debian keeps ejabberd and the Erlang libraries it needs; empty where there is none."""
    folders = sorted(Path("/usr/lib").glob("*/ejabberd-*"))
    return str(folders[0].parent) if folders else ""


class Ejabberd(LocalServer):
    """ejabberd in the foreground. Any name with any password may log in."""

    software = "ejabberd"
    program = "erl"
    packages = "ejabberd"

    @property
    def log_files(self) -> tuple[Path, ...]:
        """Its own log and what it prints."""
        return (self.folder / "output.log", self.folder / "ejabberd.log")

    @property
    def config_file(self) -> Path:
        """The configuration that `start` writes: JSON is YAML."""
        return self.folder / "ejabberd.yml"

    @classmethod
    def find_program(cls) -> str:
        """The path of Erlang's machine. Raises ConfigError where it or ejabberd is missing."""
        if not _libraries():
            raise ConfigError(f"ejabberd is not installed: apt-get install --no-install-recommends {cls.packages}")
        return super().find_program()

    def write_config(self) -> None:
        """Writes the configuration file and makes the data folder."""
        (self.folder / "mnesia").mkdir(exist_ok=True)
        self.config_file.write_text(json.dumps(self.configuration(), indent=2))

    def configuration(self) -> dict[str, object]:
        """The content of the configuration file."""
        client = {
            "port": self.client_port,
            "ip": HOST,
            "module": "ejabberd_c2s",
            "max_stanza_size": 1048576,
            "shaper": "none",
            "starttls": False,
        }
        service = {
            "port": self.component_port,
            "ip": HOST,
            "module": "ejabberd_service",
            "access": "all",
            "shaper": "none",
            # By default each connection would get the stanzas of all these hosts.
            "global_routes": False,
            "hosts": {name: {"password": secret} for name, secret in self.components.items()},
        }
        return {
            "hosts": [self.domain, "guest.localhost"],
            "loglevel": 4,
            "listen": [client, service],
            "auth_method": "anonymous",
            "anonymous_protocol": "login_anon",
            "allow_multiple_connections": True,
            "acl": {},
            "access_rules": {"c2s": {"allow": "all"}},
            "shaper": {},
            "modules": {
                "mod_disco": {},
                "mod_muc": {"host": "rooms.@HOST@"},
                "mod_ping": {},
                "mod_roster": {},
                "mod_time": {},
                "mod_version": {},
            },
        }

    def command(self, program: str) -> list[str]:
        """The Erlang machine without its port mapper, with the data in our folder."""
        data = str(self.folder / "mnesia")
        start = ["-noinput", "-start_epmd", "false", "+S", "1:1", "-mnesia", "dir", f'"{data}"', "-s", "ejabberd"]
        return [program, *start]

    def environment(self) -> dict[str, str]:
        """The variables with the paths of ejabberd's configuration and log."""
        return {
            "EJABBERD_CONFIG_PATH": str(self.config_file),
            "EJABBERD_LOG_PATH": str(self.folder / "ejabberd.log"),
            "ERL_CRASH_DUMP": str(self.folder / "crash.dump"),
            "ERL_LIBS": _libraries(),
            "HOME": str(self.folder),
        }

    def account(self, name: str, password: str = "secret") -> LocalAccount:
        """Anybody may log in: nothing has to be made."""
        return LocalAccount(f"{name}@{self.domain}", password)
