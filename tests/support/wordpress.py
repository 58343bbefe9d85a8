"""WordPress of Debian as a publisher: a MariaDB of its own, the web server of PHP, and posts by its own functions."""

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from smartfeeds.local.process import free_port
from support.waiting import until, wait_for

PROGRAM = Path("/usr/share/wordpress")
_PATH = f"{os.environ['PATH']}:/usr/sbin"

_CONFIG = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{folder}/socket');
$table_prefix = 'wp_';
define('WP_HOME', '{origin}'); define('WP_SITEURL', '{origin}');
define('DISABLE_WP_CRON', true);
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
define('ABSPATH', '{program}/');
require_once ABSPATH . 'wp-settings.php';
"""
_INSTALL = """<?php
define('WP_INSTALLING', true);
function wp_mail() { return true; }
require __DIR__ . '/config.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('A blog', 'ann', 'ann@example.org', true, '', 'secret');
update_option('ping_sites', $argv[1]);
"""
# The pings of a post belong to WordPress's own timer; they are sent at once here.
_PUBLISH = """<?php
require __DIR__ . '/config.php';
wp_insert_post(['post_title' => $argv[1], 'post_content' => $argv[2], 'post_status' => 'publish', 'post_author' => 1]);
do_all_pings();
"""
_INDEX = """<?php
define('WP_USE_THEMES', true);
require __DIR__ . '/config.php';
wp();
require ABSPATH . WPINC . '/template-loader.php';
"""


@dataclass(frozen=True, slots=True)
class WordPress:
    """A running blog. `target` is where it listens."""

    folder: Path
    origin: str
    target: str

    async def publish(self, title: str, html: str) -> None:
        """Publishes a post and sends its pings."""
        await self.php("publish.php", title, html)

    async def php(self, script: str, *arguments: str) -> None:
        """Runs one of the scripts."""
        host = self.origin.removeprefix("http://")
        await run("php", str(self.folder / script), *arguments, HTTP_HOST=host, REQUEST_METHOD="GET")


async def run(*command: str, **environment: str) -> None:
    """Runs a program that must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env={**os.environ, **environment}
    )
    output, _ = await wait_for(process.communicate(), f"the end of {command[0]}")
    assert process.returncode == 0, output.decode()


def program(name: str) -> str:
    """The path of a program that the tests need."""
    path = shutil.which(name, path=_PATH)
    assert path is not None, f"{name} is not installed: tools/setup test-all installs it"
    return path


def write(folder: Path, texts: dict[str, str]) -> None:
    """Writes the scripts and the configuration."""
    assert PROGRAM.is_dir(), "wordpress is not installed: tools/setup test-all installs it"
    for name, text in texts.items():
        (folder / f"{name}.php").write_text(text)


async def ready(process: Process, *command: str) -> None:
    """Returns when the command succeeds, which needs the process."""

    async def succeeds() -> bool:
        assert process.returncode is None, command
        check = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        return await check.wait() == 0

    await until(succeeds, f"success of {command[0]}")


@asynccontextmanager
async def started(log: Path, *command: str) -> AsyncIterator[Process]:
    """A program that is stopped at the end."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await wait_for(process.wait(), f"the end of {command[0]}")


@asynccontextmanager
async def running_wordpress(folder: Path, origin: str, ping_url: str) -> AsyncIterator[WordPress]:
    """A blog with the public address `origin`, which pings another address after each post."""
    database = program("mariadbd")
    port = free_port()
    blog = WordPress(folder, origin, f"http://127.0.0.1:{port}")
    texts = {"install": _INSTALL, "publish": _PUBLISH, "index": _INDEX}
    texts["config"] = _CONFIG.format(folder=folder, origin=origin, program=PROGRAM)
    write(folder, texts)
    data, socket = f"--datadir={folder}/data", f"--socket={folder}/socket"
    user = ("--user=root",) if os.geteuid() == 0 else ()
    await run(
        *("mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"),
        *user,
    )
    client = ("mariadb", "--no-defaults", socket, "--user=root", "--execute")
    async with AsyncExitStack() as stack:
        log = folder / "mariadb.log"
        options = ("--skip-networking", f"--pid-file={folder}/pid", "--innodb-buffer-pool-size=16M")
        process = await stack.enter_async_context(
            started(log, database, "--no-defaults", data, socket, *options, *user)
        )
        await ready(process, *client, "CREATE DATABASE IF NOT EXISTS wordpress")
        await blog.php("install.php", ping_url)
        log = folder / "php.log"
        index = str(folder / "index.php")
        process = await stack.enter_async_context(started(log, "php", "-S", f"127.0.0.1:{port}", index))
        await ready(process, "curl", "-sf", "-o", "/dev/null", f"{blog.target}/?feed=rss2")
        yield blog
