"""Real reverse proxies in front of a service: nginx and Caddy with the configurations that operators copy."""

import asyncio
import os
import re
import shutil
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

from smartfeeds.local.process import free_port
from support.waiting import until

CONFIG: Final = Path(__file__).parents[2] / "config"
NAME: Final = "feeds.example.org"
BASE_PATH: Final = "/news"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the proxy for HTTP and HTTPS, and that of the service."""

    plain: int
    secure: int
    service: int


class Proxy:
    """A proxy that runs inside an async context, with the files of `kind` in `config/`, changed as the guide says."""

    def __init__(self, kind: str, folder: Path, service_port: int, base_path: str = "") -> None:
        self.ports = Ports(free_port(), free_port(), service_port)
        self.certificate = folder / "certificate.pem"
        self.log = folder / "proxy.log"
        self._folder = folder
        self._kind = kind
        self._base_path = base_path
        self._process: asyncio.subprocess.Process | None = None

    @property
    def origin(self) -> str:
        """The public address without a path."""
        return f"https://{NAME}:{self.ports.secure}"

    def tls(self) -> ssl.SSLContext:
        """Trusts the certificate of the proxy, and nobody else."""
        return ssl.create_default_context(cafile=str(self.certificate))

    async def __aenter__(self) -> "Proxy":
        key = self._folder / "key.pem"
        request = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME}"
        names = ("-addext", f"subjectAltName=DNS:{NAME}")
        maker = await asyncio.create_subprocess_exec(
            "openssl",
            *request.split(),
            *names,
            "-keyout",
            key,
            "-out",
            self.certificate,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await maker.communicate()
        assert maker.returncode == 0, said.decode()
        write, command = _KINDS[self._kind]
        config = self._folder / "proxy.conf"
        config.write_text(write(self._folder, self.ports, self._base_path))
        program = shutil.which(self._kind, path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None, f"{self._kind} is not installed: tools/setup test-all installs it"
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                program,
                *command(self._folder, config),
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
                stdout=log,
                stderr=log,
            )
        await self._listening()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.wait()

    async def _listening(self) -> None:
        assert self._process is not None
        process = self._process

        async def accepts(port: int) -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                assert process.returncode is None, self.log.read_text()
                return False
            writer.close()
            return True

        # Caddy opens one after the other.
        for port in (self.ports.secure, self.ports.plain):
            await until(partial(accepts, port), f"the proxy at port {port}")


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The text with these parts replaced, each of which it must have."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, ports: Ports, base_path: str) -> str:
    site = replaced(
        re.sub(r"(?m)^ *listen \[::\].*\n", "", (CONFIG / "nginx.conf").read_text()),
        ("listen 80;", f"listen 127.0.0.1:{ports.plain};"),
        ("listen 443 ssl", f"listen 127.0.0.1:{ports.secure} ssl"),
        (f"/etc/letsencrypt/live/{NAME}/fullchain.pem", f"{folder}/certificate.pem"),
        (f"/etc/letsencrypt/live/{NAME}/privkey.pem", f"{folder}/key.pem"),
        ("127.0.0.1:8280", f"127.0.0.1:{ports.service}"),
        ("location / {", f"location {base_path}/ {{"),
    )
    temporary = " ".join(
        f"{part}_temp_path {folder}/{part};" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # The folder of a test is for its owner alone, and root's nginx would work as another user.
    user = "user root; " if os.geteuid() == 0 else ""
    head = f"{user}daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
    return f"{head}http {{ access_log off; {temporary}\n{site}}}\n"


def _caddy(folder: Path, ports: Ports, base_path: str) -> str:
    site = replaced(
        (CONFIG / "Caddyfile").read_text(),
        (f"{NAME} {{", f"{NAME}:{ports.secure} {{\n\tbind 127.0.0.1\n\ttls {folder}/certificate.pem {folder}/key.pem"),
        ("127.0.0.1:8280", f"127.0.0.1:{ports.service}"),
        ("reverse_proxy ", f"reverse_proxy {base_path}/* " if base_path else "reverse_proxy "),
    )
    options = f"admin off\n\thttp_port {ports.plain}\n\tskip_install_trust\n\tstorage file_system {folder}/data"
    return f"{{\n\t{options}\n}}\n{site}"


# The configuration, and the arguments of the program.
_KINDS: Final[dict[str, tuple[Callable[[Path, Ports, str], str], Callable[[Path, Path], list[str]]]]] = {
    "nginx": (_nginx, lambda folder, config: ["-p", str(folder), "-e", "stderr", "-c", str(config)]),
    "caddy": (_caddy, lambda _, config: ["run", "--config", str(config), "--adapter", "caddyfile"]),
}
