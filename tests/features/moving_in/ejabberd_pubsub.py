"""An ejabberd with its own publish-subscribe services, which write their data to mnesia and to SQLite.

After `free_names` the services have other JIDs, and components may have those of before.
"""

import json
import urllib.request
from pathlib import Path

from smartfeeds.local.process import HOST, LocalAccount, free_port
from support.ejabberd import Ejabberd
from support.waiting import HANG_S

MNESIA, SQL = "pubsub.localhost", "pubsub.sql.localhost"
SECRET = "secret"


class EjabberdPubsub(Ejabberd):
    """ejabberd with mod_pubsub on two domains: `localhost` stores nodes in mnesia, `sql.localhost` in SQLite."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"unused.localhost": SECRET})
        self.api_port = free_port()
        self._prefix = ""
        self._accounts: set[str] = set()

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
        plain: dict[str, object] = {name: value for name, value in modules.items() if name != "mod_muc"}
        plain["mod_caps"] = {}  # mod_pubsub requires it for personal nodes
        pubsub = {"access_createnode": "all", "plugins": ["flat", "pep"], "max_items_node": 1000}
        return {
            **found,
            # ejabberd removes an anonymous account when it logs out, and all its nodes with it.
            "auth_method": "internal",
            "hosts": [self.domain, "sql.localhost"],
            "listen": [*listen, api],
            "api_permissions": access,
            "sql_type": "sqlite",
            "sql_database": str(self.database),
            "host_config": {
                "localhost": {"modules": {**plain, "mod_pubsub": {"host": self._prefix + MNESIA, **pubsub}}},
                "sql.localhost": {
                    "modules": {**plain, "mod_pubsub": {"host": self._prefix + SQL, "db_type": "sql", **pubsub}}
                },
            },
            "modules": {},
        }

    def free_names(self) -> None:
        """Restarts the server with other JIDs for its services, and with components that have the JIDs of before."""
        self.stop()
        self._prefix = "personal."
        self.components = dict.fromkeys((MNESIA, SQL), SECRET)
        self.start()

    def account(self, name: str, password: str = "secret") -> LocalAccount:
        """Creates an account if it does not exist."""
        if name not in self._accounts:
            self._accounts.add(name)
            self.call("register", user=name, host=self.domain, password=password)
        return super().account(name, password)

    def call(self, command: str, **arguments: object) -> str:
        """Runs a command of `ejabberdctl` over HTTP. Returns the response."""
        request = urllib.request.Request(
            f"http://{HOST}:{self.api_port}/api/{command}",
            json.dumps(arguments).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=HANG_S) as response:
            return str(response.read().decode())
