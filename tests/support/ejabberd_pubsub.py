"""An ejabberd with its own publish-subscribe services, which write their data to mnesia and to SQLite.

After `replace_services` the server has none, and components may have the same addresses.
"""

import json
import urllib.request
from pathlib import Path

from smartfeeds.demo.process import HOST, free_port
from support.ejabberd import Ejabberd

MNESIA, SQL = "pubsub.localhost", "pubsub.sql.localhost"
SECRET = "secret"
TIMEOUT_S = 60.0


class EjabberdPubsub(Ejabberd):
    """ejabberd with mod_pubsub on two domains: `localhost` stores nodes in mnesia, `sql.localhost` in SQLite."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"unused.localhost": SECRET})
        self.api_port = free_port()
        self._services = True

    @property
    def database(self) -> Path:
        """The database of `sql.localhost`."""
        return self.folder / "ejabberd.sqlite"

    def configuration(self) -> dict[str, object]:
        """With the services, and with the HTTP interface of `ejabberdctl`."""
        found = super().configuration()
        listen, modules = found["listen"], found["modules"]
        assert isinstance(listen, list) and isinstance(modules, dict)
        api = {
            "port": self.api_port,
            "ip": HOST,
            "module": "ejabberd_http",
            "request_handlers": {"/api": "mod_http_api"},
        }
        access = {"here": {"from": ["mod_http_api"], "who": {"access": {"allow": "all"}}, "what": "*"}}
        pubsub = {"access_createnode": "all", "plugins": ["flat"], "max_items_node": 1000}
        return {
            **found,
            "hosts": [self.domain, "sql.localhost"],
            "listen": [*listen, api],
            "api_permissions": access,
            "sql_type": "sqlite",
            "sql_database": str(self.database),
            "host_config": {
                "localhost": {"modules": self._with(modules, {"host": MNESIA, **pubsub})},
                "sql.localhost": {"modules": self._with(modules, {"host": SQL, "db_type": "sql", **pubsub})},
            },
            "modules": {},
        }

    def _with(self, modules: dict[str, object], pubsub: dict[str, object]) -> dict[str, object]:
        plain = {name: options for name, options in modules.items() if name != "mod_muc"}
        return {**plain, "mod_pubsub": pubsub} if self._services else plain

    def replace_services(self, *names: str) -> None:
        """Restarts the server without its services, and with components of these names."""
        self.stop()
        self._services = False
        self.components = dict.fromkeys(names, SECRET)
        self.start()

    def call(self, command: str, **arguments: object) -> str:
        """Runs a command of `ejabberdctl` over HTTP. Returns the response."""
        request = urllib.request.Request(
            f"http://{HOST}:{self.api_port}/api/{command}",
            json.dumps(arguments).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return str(response.read().decode())
