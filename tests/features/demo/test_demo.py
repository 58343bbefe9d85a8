"""The parts of the demonstration that need no server."""

import sys
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.core.token import TokenScope
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.tokens import add_token, authenticate, new_token
from smartfeeds.features.demo import serve
from smartfeeds.features.demo.serve import NODE, find_folder, keep_token, prepare
from smartfeeds.features.demo.stage import OWNER
from support.shell import Run
from support.world import World


async def test_start_has_the_token_of_the_last_one(feed: World, tmp_path: Path) -> None:
    """A script that has it works after a restart. Other tokens of the owner stay."""
    own, _ = new_token(OWNER, TokenScope.READ, NODE, "mine")
    await feed.service.write(lambda tx, context: add_token(tx, context, own, None))
    first, second = [await keep_token(feed.service, tmp_path) for _ in range(2)]
    assert first == second
    assert await token_ids(feed) == {own.token_id, first.split("_")[1]}
    await feed.service.read(lambda tx, context: authenticate(tx, context, second))
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", [None, "", "sf_x", "sf_" + "0" * 12 + "_" + "x" * 43])
async def test_token_that_the_store_does_not_have_is_replaced(feed: World, tmp_path: Path, text: str | None) -> None:
    """Somebody has revoked it, or it was made by a version without a file."""
    first = await keep_token(feed.service, tmp_path)
    if text is None:
        await feed.service.write(lambda tx, _: account_rows.remove_token(tx, first.split("_")[1]))
    else:
        (tmp_path / "token").write_text(text)
    second = await keep_token(feed.service, tmp_path)
    assert first != second
    assert await token_ids(feed) == {second.split("_")[1]}
    assert await keep_token(feed.service, tmp_path) == second


async def token_ids(feed: World) -> set[str]:
    return {token.token_id for token in await feed.service.read(lambda tx, _: account_rows.tokens_of(tx, OWNER))}


def test_demonstration_has_a_hub(tmp_path: Path) -> None:
    """Feeds name a hub and a cloud only if the service knows its own address."""
    _scene, _server, settings = prepare(tmp_path)
    assert settings.http.base_url == f"http://{settings.http.listen}"


@pytest.mark.parametrize("command", [("phone",), ("post", "Tea"), ("publish", "Tea")])
def test_demonstration_that_does_not_run_is_named_at_once(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A client would try to log in for half a minute."""
    prepare(tmp_path / ".run")
    refused = run("demo", *command, code=Exit.LINK)
    assert refused.stderr == f"smartfeeds: the demonstration in {tmp_path}/.run does not run; start it with make run\n"


@pytest.mark.parametrize(("taken", "is_said"), [(False, False), (True, True)])
def test_other_ports_are_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: bool, is_said: bool) -> None:
    """A second clone has other ports than the README."""
    monkeypatch.setattr(serve, "is_listening", lambda _port: taken)
    scene, _server, _settings = prepare(tmp_path)
    text = serve._text(tmp_path, scene, "sf_x", 1, 2)

    assert ("These ports are not the usual ones" in text) == is_said
    assert (f"replace 15280 by {scene.http_port}, and 15281 by {scene.blog_port}" in text) == is_said


def test_folder_of_the_demonstration_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the nearest folder above, else beside the installation."""
    here, clone = tmp_path / "work" / "deep", tmp_path / "clone"
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    assert find_folder() == Path(".run")
    for folder in (clone, tmp_path / "work"):
        (folder / ".run").mkdir(parents=True)
        (folder / ".run" / "scene.json").touch()
        assert find_folder() == folder / ".run"
