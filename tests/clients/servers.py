"""Prosody and ejabberd with WebSocket, which browsers' libraries need (RFC 7395), and PEP, which Libervia needs."""

from pathlib import Path

from smartfeeds.local.process import HOST, free_port
from smartfeeds.local.prosody import Prosody
from support.ejabberd import Ejabberd
from support.servers import SECRET as SECRET

NAME = "feeds.localhost"


class WebProsody(Prosody):
    """A Prosody with `ws://HOST:PORT/xmpp-websocket`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {NAME: SECRET})
        self.http_port = free_port()

    @property
    def websocket(self) -> str:
        """The address for clients."""
        return f"ws://{HOST}:{self.http_port}/xmpp-websocket"

    def write_config(self) -> None:
        """As without WebSocket, and the module for it."""
        super().write_config()
        text = self.config_file.read_text()
        text = text.replace(
            "http_ports = { }", f'http_ports = {{ {self.http_port} }}\nhttp_interfaces = {{ "{HOST}" }}'
        )
        text = text.replace('"posix" }', '"posix", "websocket", "pep" }').replace('"http", ', "")
        text = text.replace("c2s_require", f'http_host = "{HOST}"\nconsider_websocket_secure = true\nc2s_require', 1)
        self.config_file.write_text(text)


class WebEjabberd(Ejabberd):
    """An ejabberd with `ws://HOST:PORT/ws`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {NAME: SECRET})
        self.http_port = free_port()

    @property
    def websocket(self) -> str:
        """The address for clients."""
        return f"ws://{HOST}:{self.http_port}/ws"

    def configuration(self) -> dict[str, object]:
        """As without WebSocket, and a listener for it."""
        plain = super().configuration()
        listen = plain["listen"]
        assert isinstance(listen, list) and isinstance(plain["modules"], dict)
        handlers = {"/ws": "ejabberd_http_ws"}
        web = {"port": self.http_port, "ip": HOST, "module": "ejabberd_http", "request_handlers": handlers}
        modules = {**plain["modules"], "mod_caps": {}, "mod_pubsub": {"plugins": ["flat", "pep"]}}
        return {**plain, "listen": [*listen, web], "modules": modules}
