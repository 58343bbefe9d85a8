"""What operators copy: server configurations, the systemd unit, the container files. Each is started or checked."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from smartfeeds.app.config import Settings, load, settings_of
from smartfeeds.cli import main
from smartfeeds.console import Exit
from smartfeeds.features.doctor.findings import CheckState
from smartfeeds.features.doctor.probe import check_link
from smartfeeds.local.process import LocalServer
from smartfeeds.local.prosody import Prosody
from support.ejabberd import Ejabberd
from support.shell import program_in

NAME = "feeds.example.org"

OPERATOR = (Path(__file__).parents[2] / "docs/operator.md").read_text()
# `docker compose -f FILE ... exec SERVICE COMMAND`: commands of the service smartfeeds run in this folder, and others
# are noted.
DOCKER = """\
#!/bin/sh
while [ "$1" != exec ]; do shift; done
[ "$2" = smartfeeds ] || { echo "$*" >> noted.txt; exit; }
shift 2
exec "$@"
"""


def block_of(kind: str) -> str:
    """A block of the operator's guide."""
    (block,) = re.findall(rf"(?ms)^```sh {kind}\n(.*?)^```$", OPERATOR)
    return str(block)


def interpolated(value: object, variables: dict[str, str]) -> str:
    """A value of a compose file as Compose reads it."""

    def value_of(match: re.Match[str]) -> str:
        name, operator, rest = match.groups()
        if name in variables:
            return variables[name]
        assert operator != ":?", f"{name}: {rest}"
        return str(rest)

    return re.sub(r"\$\{(\w+)(:\?|:-)([^}]*)\}", value_of, str(value))


@pytest.fixture
def compose_variables(tmp_path: Path) -> dict[str, str]:
    """The variables of the file that the guide lets operators write."""
    (tmp_path / "docker").mkdir()
    subprocess.run(["bash", "-e", "-c", block_of("compose-env")], cwd=tmp_path, check=True)
    file = tmp_path / "docker/.env"
    assert file.stat().st_mode & 0o077 == 0
    return {
        name: value.removeprefix("'").removesuffix("'")
        for name, _, value in (line.partition("=") for line in file.read_text().splitlines())
    }


def prosody_of(text: str) -> Callable[[LocalServer], str]:
    """The example behind the throw-away server's own global part."""

    def config(server: LocalServer) -> str:
        base = server.config_file.read_text().partition("VirtualHost")[0]  # type: ignore[attr-defined]
        given = set(re.findall(r"(?m)^(\w+) = ", base))
        kept = "\n".join(line for line in text.splitlines() if line.partition(" = ")[0] not in given)
        return f"{base}\n{kept}\nVirtualHost 'localhost'\n"

    return config


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LocalServer]]:
    """Starts a server with a configuration made from its usual one."""
    servers: list[LocalServer] = []

    def begin(kind: type[LocalServer], change: Callable[[LocalServer], str]) -> LocalServer:
        server = kind(tmp_path / "server", {NAME: "not used"})
        original = server.write_config

        def write() -> None:
            original()
            server.config_file.write_text(change(server))  # type: ignore[attr-defined]

        monkeypatch.setattr(server, "write_config", write)
        servers.append(server)
        server.start()
        return server

    yield begin
    for server in servers:
        server.stop()


async def accepts(server: LocalServer, secret: str) -> CheckState:
    settings = settings_of(component={"jid": NAME, "secret": secret, "port": server.component_port})
    return (await check_link(settings)).state


async def test_prosody_example_accepts_the_component(root: Path, start: Callable[..., LocalServer]) -> None:
    server = start(Prosody, prosody_of((root / "config/prosody.cfg.lua.example").read_text()))

    assert await accepts(server, "change me") is CheckState.OK
    assert await accepts(server, "another") is CheckState.FIX


async def test_prosody_configuration_of_the_containers_accepts_the_component(
    root: Path, start: Callable[..., LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "from the environment")
    server = start(Prosody, prosody_of((root / "docker/prosody.cfg.lua").read_text()))

    assert await accepts(server, "from the environment") is CheckState.OK
    assert await accepts(server, "another") is CheckState.FIX


@pytest.mark.parametrize("file", ["config/ejabberd.yml.example", "docker/ejabberd.yml"])
async def test_ejabberd_example_accepts_the_component(root: Path, start: Callable[..., LocalServer], file: str) -> None:
    example = yaml.safe_load((root / file).read_text())
    (service,) = [one for one in example["listen"] if one["module"] == "ejabberd_service"]

    def change(server: LocalServer) -> str:
        config = json.loads(server.config_file.read_text())  # type: ignore[attr-defined]
        client = next(one for one in config["listen"] if one["module"] == "ejabberd_c2s")
        config["listen"] = [client, {**service, "port": server.component_port, "ip": "127.0.0.1"}]
        return json.dumps(config)

    server = start(Ejabberd, change)

    assert service["global_routes"] is False
    assert await accepts(server, "change me") is CheckState.OK
    assert await accepts(server, "another") is CheckState.FIX


def test_init_prints_what_the_examples_say(root: Path, tmp_path: Path) -> None:
    printed = CliRunner().invoke(main, ["init", NAME, "--output", str(tmp_path / "x.toml")]).output
    secret = load(tmp_path / "x.toml").component.reveal_secret()
    printed = printed.replace(secret, "change me")
    lines = [
        line
        for line in (root / "config/prosody.cfg.lua.example").read_text().splitlines()
        if "component_secret" in line
    ]
    assert all(line in printed for line in lines)
    block = printed[printed.index("listen:") : printed.index("Then:")]
    assert yaml.safe_load(block) == yaml.safe_load((root / "config/ejabberd.yml.example").read_text())


def test_systemd_unit_is_valid_and_hardened(root: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    unit = (root / "config/smartfeeds.service").read_text()
    options = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    codes = {int(code) for code in options["RestartPreventExitStatus"].split()}

    assert codes == {Exit.CONFIG, Exit.STORE, Exit.NEWER}
    assert options["DynamicUser"] == options["NoNewPrivileges"] == "yes"
    if analyze:
        copy = tmp_path / "smartfeeds.service"
        copy.write_text(unit.replace("/opt/smartfeeds/bin/smartfeeds", "/bin/true"))
        done = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("server", ["prosody", "ejabberd"])
def test_compose_file_starts_what_the_image_has(root: Path, server: str) -> None:
    compose: dict[str, Any] = yaml.safe_load((root / f"docker/compose.{server}.yaml").read_text())

    ours = compose["services"]["smartfeeds"]
    assert set(compose["services"]) == {server, "smartfeeds"}
    assert (root / "docker" / ours["build"]["context"] / ours["build"]["dockerfile"]).exists()
    assert ours["environment"]["SMARTFEEDS_COMPONENT__HOST"] == server
    assert ours["cap_drop"] == ["ALL"]
    volumes = {volume.partition(":")[0] for service in compose["services"].values() for volume in service["volumes"]}
    assert {name for name in volumes if not name.startswith(".")} == set(compose["volumes"])
    assert all((root / "docker" / name).exists() for name in volumes if name.startswith("."))


@pytest.mark.parametrize("server", ["prosody", "ejabberd", "postgres", "caddy", "scaling"])
def test_compose_files_need_no_variable_that_the_documented_file_lacks(
    root: Path, server: str, compose_variables: dict[str, str]
) -> None:
    text = (root / f"docker/compose.{server}.yaml").read_text()

    assert yaml.safe_load(text)["services"]
    assert "${" in text and "${" not in interpolated(text, compose_variables)
    assert len(compose_variables["SECRET"]) == 32


def test_documented_commands_in_the_container_make_a_feed_and_a_token(
    root: Path, tmp_path: Path, compose_variables: dict[str, str]
) -> None:
    """With the environment of the container, in place of the container."""
    environment = program_in(tmp_path / "bin")
    (tmp_path / "bin/docker").write_text(DOCKER)
    (tmp_path / "bin/docker").chmod(0o755)
    compose = yaml.safe_load((root / "docker/compose.prosody.yaml").read_text())
    environment |= {
        name: interpolated(value, compose_variables)
        for name, value in compose["services"]["smartfeeds"]["environment"].items()
    }
    environment["SMARTFEEDS_STORE__URL"] = f"sqlite:///{tmp_path}/feeds.db"

    def run(script: str) -> str:
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    printed = run(block_of("compose"))
    assert (tmp_path / "noted.txt").read_text() == "exec prosody prosodyctl adduser alice@example.org\n"
    assert "Created the node news, owned by alice@example.org." in printed
    assert printed.splitlines()[-1].startswith("sf_")
    assert "alice@example.org" in run("smartfeeds node affiliations news")
    assert settings_from(environment).pubsub.admins == ("alice@example.org",)


def settings_from(environment: dict[str, str]) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return load(None)


def test_compose_file_of_caddy_puts_it_in_front(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compose = yaml.safe_load((root / "docker/compose.caddy.yaml").read_text())
    caddy, ours = compose["services"]["caddy"], compose["services"]["smartfeeds"]
    for name, value in ours["environment"].items():
        monkeypatch.setenv(name, interpolated(value, {"NAME": NAME}))
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", NAME)
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET", "x")

    http = load(None).http
    assert http.base_url == f"https://{NAME}"
    assert http.proxies == (f"{caddy['networks']['default']['ipv4_address']}/32",)
    network = compose["networks"]["default"]["ipam"]["config"][0]["subnet"]
    assert ip_address(caddy["networks"]["default"]["ipv4_address"]) in ip_network(network)
    volumes = [volume.partition(":")[0] for volume in caddy["volumes"]]
    assert all((root / "docker" / name).exists() for name in volumes if name.startswith("."))
    assert {name for name in volumes if not name.startswith(".")} == set(compose["volumes"])


def test_caddyfile_of_the_containers_is_the_one_that_the_tests_run(root: Path) -> None:
    """With the names of the containers; Caddy itself reads it."""
    ours = (root / "config/Caddyfile").read_text().partition("\n")[2]
    theirs = (root / "docker/Caddyfile").read_text().partition("\n")[2]
    assert theirs == ours.replace(NAME, "{$NAME}").replace("127.0.0.1:8280", "smartfeeds:8280")

    command = ["caddy", "adapt", "--config", root / "docker/Caddyfile", "--adapter", "caddyfile"]
    adapted = subprocess.run(command, env={**os.environ, "NAME": NAME}, capture_output=True, text=True, check=True)
    (server,) = json.loads(adapted.stdout)["apps"]["http"]["servers"].values()
    assert server["routes"][0]["match"] == [{"host": [NAME]}]
    assert '"dial":"smartfeeds:8280"' in adapted.stdout


def test_image_is_built_by_commands_that_work(root: Path) -> None:
    """The pins have the build package, because the image installs without an environment for the build."""
    text = (root / "docker/Dockerfile").read_text()
    assert "--no-build-isolation" in text
    needed = tomllib.loads((root / "pyproject.toml").read_text())
    (build,) = needed["build-system"]["requires"]
    pinned = dict(re.findall(r"(?m)^([a-z]+)==(\d+)", (root / "requirements.lock").read_text()))
    assert int(pinned["setuptools"]) >= int(build.removeprefix("setuptools>="))
    sources = {
        part.removeprefix("./") for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", text) for part in line.split()
    }
    files = needed["tool"]["setuptools"]["data-files"]["share/man/man1"]
    assert all(any(file == source or file.startswith(f"{source}/") for source in sources) for file in files)


def test_compose_environment_is_a_configuration(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without the variables that may be left out."""
    compose = yaml.safe_load((root / "docker/compose.prosody.yaml").read_text())
    for name, value in compose["services"]["smartfeeds"]["environment"].items():
        monkeypatch.setenv(name, interpolated(value, {"SECRET": "x"}))
    for line in (root / "docker/Dockerfile").read_text().splitlines():
        for name, value in re.findall(r"(SMARTFEEDS_\w+)=(\S+)", line):
            monkeypatch.setenv(name, value)

    settings = load(None)

    assert settings.component.host == "prosody"
    assert settings.pubsub.admins == ()
    assert settings.store.url == "sqlite:////var/lib/smartfeeds/feeds.db"
    assert settings.log.format == "json"


def test_dockerfile_copies_what_exists_and_runs_as_nobody_special(root: Path) -> None:
    text = (root / "docker/Dockerfile").read_text()
    sources = [part for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", text) for part in line.split()[:-1]]

    assert sources
    assert all((root / source).exists() for source in sources)
    assert text.index("USER smartfeeds") < text.index("\nCMD ")
    assert "HEALTHCHECK" in text
    for command in re.findall(r"CMD (\[.*\])", text):
        program, *arguments = json.loads(command)
        assert program == "smartfeeds"
        assert arguments[0] in ("run", "status")


def test_pins_of_the_image_are_those_the_tests_ran_with(root: Path) -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"(?m)^([a-z0-9_.-]+==[^ ]+)", (root / name).read_text()))

    assert pins("requirements.lock") < pins("requirements-dev.lock")
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (root / name).read_text()
