"""The page about PostgreSQL: its commands run on a real server, and its settings are read."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from smartfeeds.app.config import load
from smartfeeds.features.doctor.probe_postgres import CONNECTIONS
from support.postgres import PostgresServer, postgres_program
from support.shell import program_in, run_block, shell_in

ADDRESS = "postgresql://smartfeeds@db.example.org/smartfeeds"


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[2] / "docs/postgres.md").read_text()


def test_commands_of_the_page_run_in_their_order(
    page: str, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-092] [OPS-094]"""
    environment = program_in(tmp_path / "bin")
    folder = str(Path(postgres_program("pg_dump")).parent)
    work = tmp_path / "work"
    work.mkdir()

    def run(script: str) -> str:
        address = ADDRESS.replace("db.example.org", f"127.0.0.1:{postgres.port}")
        libpq = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "postgres"}
        path = f"{environment['PATH']}{os.pathsep}{folder}"
        return run_block(script.replace(ADDRESS, address), work, {**environment, **libpq, "PATH": path})

    smartfeeds = shell_in(work, monkeypatch)
    for arguments in (("init", "feeds.example.org"), ("node", "create", "news"), ("publish", "news", "Hello")):
        smartfeeds(*arguments)
    Path("password").write_text("secret")
    try:
        blocks = re.findall(r"(?ms)^```sh postgres\n(.*?)^```$", page)
        outputs = [run(block) for block in blocks]
        restored = run(blocks[2])
    finally:
        run("dropdb --if-exists smartfeeds; dropuser --if-exists smartfeeds")
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", "sqlite:///./back.db")
    last = smartfeeds("export", "--node", "news", "--to", "atom").stdout

    assert len(outputs) == 7
    _created, copied, shown, _back, granted, _dumped, _restored = outputs
    assert "Both have the sha256 " in copied
    assert "news" in shown
    assert "GRANT ROLE" in granted
    assert "news" in restored
    assert "Hello" in last


def test_settings_of_the_page_are_read(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-094]"""
    (tmp_path / "database-password").write_text("x")
    blocks = re.findall(r"(?ms)^```toml\n(.*?)^```$", page)
    for block in blocks:
        tomllib.loads(block)
        path = tmp_path / "smartfeeds.toml"
        text = block.replace("/etc/smartfeeds", str(tmp_path))
        path.write_text(f'[component]\njid = "feeds.example.org"\nsecret = "x"\n{text}')
        assert load(path).store.is_shared

    assert len(blocks) == 2
    assert load(path).store.address.url.endswith("?target_session_attrs=read-write")


def test_page_has_the_connections_of_a_process(page: str) -> None:
    """[OPS-093]"""
    assert f"| {CONNECTIONS} for each process" in page


def test_compose_file_configures_the_image(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compose: dict[str, Any] = yaml.safe_load((root / "docker/compose.postgres.yaml").read_text())
    services = compose["services"]
    ours, database = services["smartfeeds"], services["database"]
    password = tmp_path / "password"
    password.write_text("x")
    for name, value in ours["environment"].items():
        # As Compose reads a variable that `docker/.env` does not have.
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value))
        monkeypatch.setenv(name, text.replace("/run/secrets/database-password", str(password)))

    store = load(None).store

    assert store.address.name == "postgresql://smartfeeds@database/smartfeeds"
    assert database["environment"]["POSTGRES_USER"] == database["environment"]["POSTGRES_DB"] == "smartfeeds"
    assert ours["environment"]["SMARTFEEDS_STORE__PASSWORD_FILE"] == database["environment"]["POSTGRES_PASSWORD_FILE"]
    assert set(ours["depends_on"]) | {"smartfeeds"} == set(services)
    assert ours["secrets"] == database["secrets"] == list(compose["secrets"])
    volumes = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in volumes if not name.startswith(".")} == set(compose["volumes"])
    assert (root / "docker/prosody.cfg.lua").exists()
