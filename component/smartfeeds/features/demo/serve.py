"""`make run`: a Prosody, the service beside it, a feed with items, and a blog to follow.

All data is in one folder. The first start creates it, and later starts use it again.
"""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress

from smartfeeds.app.config import Settings, load
from smartfeeds.app.formats import read_document
from smartfeeds.app.lifecycle import App
from smartfeeds.cli.run import report_of, status_file
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.core.jid import Jid
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import ConfigError, FeedError, LinkError, StoreError
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.tokens import add_token, authenticate, new_token
from smartfeeds.features.demo.blog import Blog
from smartfeeds.features.demo.folder import FOLDER
from smartfeeds.features.demo.stage import OWNER, write_config
from smartfeeds.local.process import HOST, LocalAccount, free_port, is_listening
from smartfeeds.local.prosody import Prosody
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.importing import ImportCounts, import_document
from smartfeeds.service.requests import SetAffiliations
from smartfeeds.store.base import WriteTx
from smartfeeds.store.lock import LockHeldError, Release, lock_file
from smartfeeds.telemetry import set_up_logging

SERVICE: Final = "feeds.localhost"
NODE: Final = "planet"
READER: Final = "bob@localhost"
ONLINE_S: Final = 60.0
_SCENE: Final = "scene.json"
_FILE: Final = "token"  # of the token, which the store does not have as a text
_LABEL: Final = "smartfeeds demo serve"
# The usual ports of XMPP servers and of the service, each plus 10,000: a server on this machine may have those.
_CLIENT_PORT, _COMPONENT_PORT, _HTTP_PORT, _BLOG_PORT = 15222, 15347, 15280, 15281


@dataclass(frozen=True, slots=True)
class Scene:
    """The ports and secrets, which stay the same from one start to the next."""

    client_port: int
    component_port: int
    secret: str
    password: str
    http_port: int = _HTTP_PORT
    blog_port: int = _BLOG_PORT

    @property
    def blog_url(self) -> str:
        """The address of the blog."""
        return f"http://{HOST}:{self.blog_port}/"

    @property
    def other_ports(self) -> bool:
        """Whether a port is not the usual one."""
        usual = (_CLIENT_PORT, _COMPONENT_PORT, _HTTP_PORT, _BLOG_PORT)
        return (self.client_port, self.component_port, self.http_port, self.blog_port) != usual

    @property
    def reader(self) -> LocalAccount:
        """The account for the user's experiments."""
        return LocalAccount(READER, self.password)

    @property
    def owner(self) -> LocalAccount:
        """The account that owns the feed."""
        return LocalAccount(OWNER, self.password)


def read_scene(folder: Path) -> Scene:
    """Returns the scene of a folder. Raises ConfigError if there is none."""
    try:
        return Scene(**json.loads((folder / _SCENE).read_text()))
    except FileNotFoundError:
        raise ConfigError(f"there is no demonstration in {folder}; start one with make run") from None
    except (OSError, ValueError, TypeError):
        raise ConfigError(f"{folder}/{_SCENE} is not valid; remove the folder {folder} to start anew") from None


def running_scene(folder: Path) -> Scene:
    """Returns the scene of a demonstration that runs. Raises ConfigError if there is none, LinkError if it does not
    run."""
    scene = read_scene(folder)
    if not is_listening(scene.client_port):
        raise LinkError(f"the demonstration in {folder} does not run; start it with make run")
    return scene


def _make_scene(folder: Path) -> Scene:
    if (folder / _SCENE).exists():
        return read_scene(folder)
    scene = Scene(
        client_port=_free(_CLIENT_PORT),
        component_port=_free(_COMPONENT_PORT),
        secret=secrets.token_urlsafe(24),
        password=secrets.token_urlsafe(9),
        http_port=_free(_HTTP_PORT),
        blog_port=_free(_BLOG_PORT),
    )
    (folder / _SCENE).touch(mode=0o600)  # before it contains the secrets
    (folder / _SCENE).write_text(json.dumps(asdict(scene)))
    return scene


def _free(port: int) -> int:
    return free_port() if is_listening(port) else port


def prepare(folder: Path) -> tuple[Scene, Prosody, Settings]:
    """Returns the data of a start. Creates it in the folder if it is missing. Raises ConfigError."""
    folder = folder.resolve()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the folder {folder}: {error.strerror}") from None
    scene = _make_scene(folder)
    server = Prosody(
        folder / "prosody",
        {SERVICE: scene.secret},
        client_port=scene.client_port,
        component_port=scene.component_port,
    )
    listen = f"{HOST}:{scene.http_port}"
    # The blog is on this machine, whose addresses no source may read by default.
    config = write_config(folder, SERVICE, scene.secret, scene.component_port, listen=listen, networks=(HOST,))
    return scene, server, load(config)


@asynccontextmanager
async def running(folder: Path, console: Console) -> AsyncIterator[tuple[Scene, App]]:
    """Runs Prosody, the blog and the service, online, until the block ends. Raises ConfigError, LinkError, StoreError.

    StoreError is also raised if a demonstration is running in this folder already.
    """
    scene, server, settings = prepare(folder)
    release = _lock(folder, scene)
    set_up_logging(settings.log.format, settings.log.level)
    try:
        console.print("Starting Prosody ...", markup=False)
        await asyncio.to_thread(server.start)
        for account in (scene.owner, scene.reader):
            await asyncio.to_thread(server.account, account.jid.partition("@")[0], account.password)
        console.print("Starting smartfeeds ...", markup=False)
        async with Blog(folder, scene.blog_port, scene.secret).serving():
            app = App(settings)
            await app.start()
            try:
                # As `smartfeeds run` does, so that `smartfeeds status` works beside a demonstration.
                async with status_file(settings.store.status_file, app.online, report_of(app)):
                    await _online(app)
                    yield scene, app
            finally:
                await app.stop()
    finally:
        await asyncio.to_thread(server.stop)
        release()


def _lock(folder: Path, scene: Scene) -> Release:
    folder = folder.resolve()
    # Lock before Prosody starts: the start ends a Prosody that a killed demonstration left in this folder, and must not
    # end the Prosody of a running one.
    try:
        return lock_file(folder / "lock", f"smartfeeds demo serve, http://{HOST}:{scene.http_port}/feeds/{NODE}/")
    except LockHeldError as error:
        raise StoreError(
            f"{folder}: {error} is running here already; use it, stop it with Ctrl-C, or choose another --folder"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write {folder}/lock: {error.strerror}") from None


async def _online(app: App) -> None:
    try:
        await asyncio.wait_for(app.online.wait(), ONLINE_S)
    except TimeoutError:
        raise LinkError(f"the service did not connect: {app.supervisor.last_error}") from None


async def fill(app: App, progress: Progress) -> ImportCounts:
    """Imports the example feed into its node. Items that exist stay as they are."""
    document = read_document(resources.files("smartfeeds.features.demo").joinpath("planet.xml").read_bytes())
    task = progress.add_task(f"Filling the feed {NODE}", total=len(document.items))
    return await import_document(
        app.service,
        NODE,
        document,
        Jid(*OWNER.split("@")),
        on_progress=lambda count: progress.advance(task, count),
    )


async def serve(folder: Path, console: Console, progress: Progress) -> None:
    """Runs the demonstration until Ctrl-C or SIGTERM. Raises ConfigError, StoreError, LinkError."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running(folder, console) as (scene, app):
        with progress:
            counts = await fill(app, progress)
        if counts.added:
            # So that the reader can answer entries.
            people = SetAffiliations(Jid(*OWNER.split("@")), SERVICE, NODE, ((READER, "publisher"),))
            await app.service.handle(people)
        node = await app.service.read(lambda tx, _context: tx.node(NODE))
        token = await keep_token(app.service, folder)
        console.print(_text(folder, scene, token, counts.added, node.live if node is not None else 0), markup=False)
        await stop.wait()
        console.print("Stopping.")
    console.print(f"All data is in {folder}; the next start finds it again.", markup=False)


async def keep_token(service: FeedService, folder: Path) -> str:
    """Returns a token for publishing in the feed: that of the last start, while the store has it. The store does not
    have the text of a token, so a file of the folder has it. Raises ConfigError, StoreError."""
    file = folder / _FILE
    former = await asyncio.to_thread(lambda: file.read_text("utf-8") if file.is_file() else "")

    def kept(tx: WriteTx, context: Context) -> str:
        try:
            authenticate(tx, context, former)
        except FeedError:  # there is none, or somebody has revoked it
            return replace_token(tx, context)
        return former

    text = await service.write(kept)
    if text != former:
        with whole_file(file, private=True) as target:
            target.write(text.encode())
    return text


def replace_token(tx: WriteTx, context: Context) -> str:
    """Returns a new token for publishing in the feed, in place of former ones."""
    for former in account_rows.tokens_of(tx, OWNER):
        if former.label == _LABEL:
            account_rows.remove_token(tx, former.token_id)
    token, text = new_token(OWNER, TokenScope.PUBLISH, NODE, _LABEL)
    add_token(tx, context, token, None)
    return text


def find_folder() -> Path:
    """Returns the folder of the demonstration: in this folder or one above it, else beside the virtual environment of
    this program."""
    here, installed = Path.cwd(), Path(sys.prefix).parent
    places = (place / FOLDER for place in (here, *here.parents, installed))
    return next((place for place in places if (place / _SCENE).exists()), Path(FOLDER))


def _text(folder: Path, scene: Scene, token: str, added: int, items: int) -> str:
    news = f"{added} new" if added else "all there from the last start"
    option = "" if folder == Path(FOLDER) else f" --folder {folder}"
    command = ".venv/bin/smartfeeds" if Path(".venv/bin/smartfeeds").exists() else "smartfeeds"
    site, config = f"http://{HOST}:{scene.http_port}", f"--config {folder}/smartfeeds.toml"
    ports = (
        f"""
These ports are not the usual ones: another program had those at the first start, perhaps a demonstration elsewhere.
In commands of the README, replace {_HTTP_PORT} by {scene.http_port}, and {_BLOG_PORT} by {scene.blog_port}.
"""
        if scene.other_ports
        else ""
    )
    return f"""
The feed is online.

  service   {SERVICE}
  node      {NODE}   ({items} items, {news})
  address   xmpp:{SERVICE}?;node={NODE}
  web page  {site}/feeds/{NODE}/
  blog      {scene.blog_url}
  account   {scene.reader.jid}   password {scene.reader.password}
  token     {token}   publishes in the feed
  server    {HOST}:{scene.client_port} for clients (no TLS), {HOST}:{scene.component_port} for components
{ports}
Follow the blog: run the first line in a second terminal, and the others in a third.

  {command} demo phone{option}
  {command} source add {scene.blog_url} --tell {scene.reader.jid} {config}
  {command} demo post 'First snow on the quay'{option}

Publish in the feed, and read it:

  curl -u :{token} -d 'Hello, world' {site}/entries/{NODE}/
  {command} demo publish 'Hello, world'{option}
  curl -N -H 'Accept: text/event-stream' {site}/feeds/{NODE}/
  {command} follow 'xmpp:{SERVICE}?;node={NODE}' --mirror \\
      --jid {scene.reader.jid} --password {scene.reader.password} --server {HOST}:{scene.client_port} --plaintext
  {command} node list {config}
  {command} demo gap

Ctrl-C stops everything.
"""
