"""Real Prosody and ejabberd processes for tests: one of each for every test process, on ports of their own.

A server knows many component names; a test that runs a component of its own takes a fresh one with `take_name`, so
that no test sees what another one left.
"""

from collections.abc import Iterator
from pathlib import Path

from smartfeeds.local.process import LocalServer
from smartfeeds.local.prosody import Prosody
from support.ejabberd import Ejabberd
from support.logs import LOGS
from support.waiting import HANG_S

SECRET = "secret"
ROOMS = "rooms.localhost"  # the domain of the group chats of each server
GUESTS = "guest.localhost"  # a second host with accounts of each server; any name and password may log in
NAMES = ("feeds.localhost", *(f"feeds-{number}.localhost" for number in range(120)))


class ProsodyWithRooms(Prosody):
    """A Prosody with group chats and a host of guests."""

    def write_config(self) -> None:
        """Adds the component of the group chats, and the host."""
        super().write_config()
        with self.config_file.open("a") as config:
            config.write(f'Component "{ROOMS}" "muc"\n    muc_room_locking = false\n')
            config.write(f'VirtualHost "{GUESTS}"\n    authentication = "insecure"\n')
            config.write('    insecure_open_authentication = "Yes please, I know what I\'m doing!"\n')


SERVERS: dict[str, type[LocalServer]] = {"prosody": ProsodyWithRooms, "ejabberd": Ejabberd}


class TestServer:
    """A running server, and which component names were not used yet."""

    __test__ = False

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self._fresh: Iterator[str] = iter(NAMES)

    def take_name(self) -> str:
        """A component name that no other test of this process has used."""
        return next(self._fresh)

    @property
    def software(self) -> str:
        """`Prosody` or `ejabberd`."""
        return self.server.software

    @property
    def client_port(self) -> int:
        """The port for clients."""
        return self.server.client_port

    @property
    def component_port(self) -> int:
        """The port for components."""
        return self.server.component_port


def run_server(kind: str, folder: Path) -> Iterator[TestServer]:
    """Starts a server of this kind for the time of a fixture."""
    server = SERVERS[kind](folder, dict.fromkeys(NAMES, SECRET))
    LOGS.follow(server.software, server.log_files)
    server.start(HANG_S)
    try:
        yield TestServer(server)
    finally:
        server.stop()
