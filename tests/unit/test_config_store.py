"""The section `[store]`: where the data is, and that the password of the database never appears."""

from collections.abc import Callable
from pathlib import Path

import pytest

from smartfeeds.app.config import Settings, load
from smartfeeds.errors import ConfigError
from support.shell import Run

SECRET = "correct horse"
URL = 'url = "postgresql://feeds@db.example/feeds"\n'
Loader = Callable[[str], Settings]


@pytest.fixture
def settings(tmp_path: Path) -> Loader:
    """Settings with the lines of a section `[store]`."""
    (tmp_path / "password").write_text(f"{SECRET}\n")

    def read(lines: str) -> Settings:
        path = tmp_path / "smartfeeds.toml"
        path.write_text(f'[component]\njid = "feeds.example.org"\nsecret = "hush"\n[store]\n{lines}')
        return load(path)

    return read


def test_files_of_a_database_file_are_beside_it(settings: Loader, tmp_path: Path) -> None:
    store = settings('url = "sqlite:///data/feeds.db"').store

    assert (store.path, store.files_folder) == (tmp_path / "data/feeds.db", tmp_path / "data/feeds.db-files")
    assert (store.is_shared, store.address.name) == (False, str(tmp_path / "data/feeds.db"))


def test_files_of_postgres_are_beside_the_configuration(settings: Loader, tmp_path: Path) -> None:
    store = settings(URL).store

    assert (store.files_folder, store.is_shared) == (tmp_path / "smartfeeds-files", True)
    with pytest.raises(ConfigError, match="is no file"):
        _ = store.path


@pytest.mark.parametrize("url", [URL, ""])
def test_files_may_be_elsewhere(settings: Loader, tmp_path: Path, url: str) -> None:
    assert settings(f'{url}files = "uploads"').store.files_folder == tmp_path / "uploads"


def test_password_comes_from_a_file_and_is_not_shown(settings: Loader) -> None:
    """[OPS-094]"""
    loaded = settings(URL + 'password_file = "password"')

    assert loaded.store.address.password == SECRET
    shown = f"{loaded!r} {loaded.model_dump_json()} {loaded.store.address!r} {loaded.store.address.name}"
    assert SECRET not in shown


def test_password_that_cannot_be_read_any_more_is_an_error_of_the_configuration(
    settings: Loader, tmp_path: Path
) -> None:
    store = settings(URL + 'password_file = "password"').store
    (tmp_path / "password").unlink()

    with pytest.raises(ConfigError, match=r"store: cannot read password_file .*/password: No such file"):
        _ = store.address


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (f"{URL}password_file = 'none'", "store: cannot read password_file "),
        (f"{URL}password_file = 'empty'", "/empty is empty; write the password"),
        ("password_file = 'password'", "password_file is for PostgreSQL"),
        ('url = "postgresql://a:correct horse@db.example/f"', "store.url: must look like postgresql://"),
        ('url = "postgresql://a:correct%20horse@db.example/f"', "store.url: must not contain a password"),
        ("lease_s = 0.5", "store.lease_s: must be at least 1"),
    ],
)
def test_mistake_says_what_to_change(settings: Loader, tmp_path: Path, lines: str, message: str) -> None:
    """[OPS-094]"""
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError) as caught:
        settings(lines)

    assert message in str(caught.value)
    assert "horse" not in str(caught.value)


@pytest.mark.needs("backup")
def test_command_for_database_files_refuses_postgres(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", "postgresql://feeds@db.example/feeds")
    run("init", "feeds.example.org")

    assert "back it up with pg_dump or base backups" in run("backup", "copy.db", code=3).stderr
