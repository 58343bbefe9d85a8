"""What is installed: the wheel in an environment of its own, and the Debian package in a folder of its own.

Both are built from the files of the checkout, and their program runs outside it: commands, the service, the pages.
"""

import asyncio
import gzip
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import aiohttp
import click
import pytest

from smartfeeds import __version__
from smartfeeds.local.process import free_port
from support.servers import SECRET, TestServer

ROOT = Path(__file__).parents[2]
READY_S = 60.0
PROGRAM = "usr/bin/smartfeeds"
FEED = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>News</title>
<entry><id>urn:x:1</id><title>We are open</title><updated>2026-01-02T10:00:00Z</updated></entry></feed>"""

# Building and installing takes longer than a test of the program.
pytestmark = pytest.mark.timeout(600)


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """The output of a command that must succeed."""
    # No variable of the test's own shell may help the installed program to find something.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SMARTFEEDS_"))}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def copy_sources(folder: Path) -> Path:
    """A copy of what a wheel is built from, because a build leaves files beside the sources."""
    for name in run(
        "git", "ls-files", "component", "docs/smartfeeds.1", "pyproject.toml", "README.md", "LICENSE"
    ).split():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    return folder / "source"


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of these sources, in a folder that has no other."""
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "-w", folder, source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return build_wheel(copy_sources(folder), folder)


@pytest.fixture(scope="session")
def wheel_program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in an environment that has the wheel and the libraries of this one, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is searched for packages, but its own .pth files are not read: the checkout stays unknown.
    (site / "libraries.pth").write_text(str(Path(click.__file__).parents[1]))
    return folder / "bin/smartfeeds"


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package."""
    # The strongest compression takes half of the time of a build, and changes no file in the package.
    folder = tmp_path_factory.mktemp("deb")
    identity = {"DEBFULLNAME": "Ann Other", "DEBEMAIL": "ann@example.org", "HOMEPAGE": "https://example.org/smartfeeds"}
    return Path(run("tools/build-deb", folder, DPKG_DEB_COMPRESSOR_LEVEL="1", **identity).strip())


@pytest.fixture(scope="session")
def dpkg(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Runs dpkg on a system in a folder, in which the scripts of the package run; the folder. A package that is
    installed is not installed again.
    """
    root = tmp_path_factory.mktemp("system")
    for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "run", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()

    def act(action: str, name: str | Path) -> Path:
        if action == "--install" and (root / PROGRAM).exists():
            return root  # an installation is thousands of files
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        # Without unsafe I/O dpkg waits for the disk after each of some thousand files.
        options = ("--force-depends", "--force-script-chrootless", "--force-unsafe-io", f"--root={root}")
        run(*as_root, "dpkg", *options, action, name)
        return root

    return act


@pytest.fixture(scope="session")
def deb_program(dpkg: Callable[..., Path], package: Path) -> Path:
    """The program of the installed package."""
    return dpkg("--install", package) / PROGRAM


@pytest.fixture(params=["wheel", "deb"])
def program(request: pytest.FixtureRequest) -> Path:
    """Each installed program in turn."""
    return Path(request.getfixturevalue(f"{request.param}_program"))


def test_wheel_has_every_file_of_the_package_and_the_man_page(wheel: Path) -> None:
    tracked = run("git", "ls-files", "component/smartfeeds").split()
    expected = {name.removeprefix("component/") for name in tracked if not name.endswith(".po")}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert expected - names == set()
    assert {name for name in names if name.endswith("share/man/man1/smartfeeds.1")}
    suffixes = {Path(name).suffix for name in names}
    assert {".html", ".css", ".js", ".mo", ".sql", ".xml"} <= suffixes


def test_upgrade_of_a_checkout_installs_no_module_of_the_former_version(tmp_path: Path) -> None:
    """The commands of docs/upgrading.md, with a build in place of the installation."""
    page = (ROOT / "docs/upgrading.md").read_text("utf-8")
    (block,) = re.findall(r"(?ms)^### Upgrade a virtual environment$.*?^```sh$(.*?)^```$", page)
    commands = [shlex.split(line) for line in block.strip().splitlines()]
    source = copy_sources(tmp_path)
    former = source / "component/smartfeeds/former.py"
    former.touch()
    with zipfile.ZipFile(build_wheel(source, tmp_path / "former")) as archive:
        assert "smartfeeds/former.py" in archive.namelist()
    former.unlink()

    assert commands[-1][-2:] == ["--no-deps", "."]
    for command in commands:
        if not command[0].endswith("/pip"):
            run(*command, cwd=source)
    with zipfile.ZipFile(build_wheel(source, tmp_path / "present")) as archive:
        assert "smartfeeds/former.py" not in archive.namelist()


async def test_installed_program_serves_a_feed(program: Path, prosody: TestServer, tmp_path: Path) -> None:
    """In any folder: the database is where the configuration says."""
    name, port = prosody.take_name(), free_port()
    conf, elsewhere = tmp_path / "conf", tmp_path / "elsewhere"
    conf.mkdir()
    elsewhere.mkdir()
    config = conf / "smartfeeds.toml"
    (elsewhere / "news.xml").write_bytes(FEED)
    await asyncio.to_thread(run, program, "init", name, "--output", config, "--port", str(prosody.component_port))
    text = re.sub(r'(?m)^secret = ".*"', f'secret = "{SECRET}"', config.read_text())
    config.write_text(text.replace("127.0.0.1:8280", f"127.0.0.1:{port}"))
    command = ("import", "news.xml", "--node", "news", "--config", config)
    assert "1 added" in await asyncio.to_thread(run, program, *command, cwd=elsewhere)
    assert sorted(path.name for path in elsewhere.iterdir()) == ["news.xml"]

    service = await asyncio.create_subprocess_exec(
        program, "run", "--config", config, "--status", tmp_path / "status.json",
        cwd=elsewhere, env={"PATH": os.environ["PATH"]}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert service.stderr is not None
        seen = b""
        async with asyncio.timeout(READY_S):
            while b"link_online" not in seen or b"started" not in seen:
                line = await service.stderr.readline()
                assert line, seen.decode()
                seen += line
        assert f"store={conf / 'smartfeeds.db'}" in seen.decode()
        assert f"http=http://127.0.0.1:{port}/" in seen.decode()
        await _check_pages(f"http://127.0.0.1:{port}")
    finally:
        if service.returncode is None:
            service.send_signal(signal.SIGTERM)
        _, rest = await service.communicate()
    assert service.returncode == 0, rest.decode()


async def _check_pages(origin: str) -> None:
    async with aiohttp.ClientSession() as session:
        headers = {"Accept": "text/html", "Accept-Language": "de"}
        async with session.get(f"{origin}/feeds/news/", headers=headers) as answer:
            page = await answer.text()
        assert "We are open" in page and '<html lang="de"' in page
        (style,) = re.findall(r'rel="stylesheet" href="([^"]+)"', page)
        for path, kind in ((style, "text/css"), ("/feeds/news.atom", "application/atom+xml")):
            async with session.get(origin + path) as answer:
                assert (answer.status, answer.content_type) == (200, kind)


def test_debian_package_has_what_a_system_needs(package: Path) -> None:
    names = set(re.findall(r"(?m) \.(/\S+)$", run("dpkg-deb", "--contents", package)))
    fields = run("dpkg-deb", "--field", package)

    assert {
        "/usr/bin/smartfeeds",
        "/usr/lib/systemd/system/smartfeeds.service",
        "/usr/lib/systemd/system/smartfeeds-backup.timer",
        "/usr/share/bash-completion/completions/smartfeeds",
        "/usr/share/doc/smartfeeds/copyright",
        "/usr/share/doc/smartfeeds/examples/nginx.conf",
    } <= names
    assert not [name for name in names if name.startswith("/etc/")], "dpkg would ask about the file at an upgrade"
    assert "Maintainer: Ann Other <ann@example.org>\n" in fields
    assert "Homepage: https://example.org/smartfeeds\n" in fields
    version = re.search(r"(?m)^Version: (.*)$", fields)
    assert version is not None
    if ".dev" in __version__:
        run("dpkg", "--compare-versions", version[1], "lt", __version__.partition(".dev")[0])
    python = f"python3 (>= 3.{sys.version_info.minor})"
    assert python in fields or sys.executable != "/usr/bin/python3"


def test_debian_package_names_the_licence_of_everything_that_it_bundles(
    dpkg: Callable[..., Path], package: Path
) -> None:
    root = dpkg("--install", package)
    text = (root / "usr/share/doc/smartfeeds/copyright").read_text()
    patterns = re.findall(r"(?m)^(?:Files: | {7})usr/lib/smartfeeds/(\S+)$", text)
    bundled = [path.name for path in (root / "usr/lib/smartfeeds").iterdir()]
    covered = {pattern.removesuffix("/*") for pattern in patterns} | {pattern.split("/")[0] for pattern in patterns}

    assert text.startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/")
    own = {name for name in bundled if name == "smartfeeds" or name.startswith("smartfeeds-")}
    assert {name for name in bundled if name not in covered} - own - {"__pycache__"} == set()


def test_debian_package_has_a_unit_that_systemd_accepts(
    dpkg: Callable[..., Path], package: Path, tmp_path: Path
) -> None:
    root = dpkg("--install", package)
    unit = (root / "usr/lib/systemd/system/smartfeeds.service").read_text()
    man = gzip.decompress((root / "usr/share/man/man1/smartfeeds.1.gz").read_bytes()).decode()

    assert "ExecStart=/usr/bin/smartfeeds run " in unit and "User=smartfeeds" in unit
    assert "DynamicUser" not in unit and "CREDENTIALS" not in unit
    assert "ConditionPathExists=/etc/smartfeeds/smartfeeds.toml" in unit
    assert man == (ROOT / "docs/smartfeeds.1").read_text()
    backup = (root / "usr/lib/systemd/system/smartfeeds-backup.service").read_text()
    assert '; \\\n  smartfeeds backup "$backup"; \\\n' in backup
    assert "\nUser=smartfeeds\n" in backup and "\nStateDirectory=smartfeeds smartfeeds-backups\n" in backup
    assert "DynamicUser" not in backup and "CREDENTIALS" not in backup and "STORE__URL" not in backup
    if shutil.which("systemd-analyze"):
        for name, text in (("smartfeeds", unit), ("smartfeeds-backup", backup)):
            copy = tmp_path / f"{name}.service"
            copy.write_text(text.replace("/usr/bin/smartfeeds", "/bin/true"))
            run("systemd-analyze", "verify", copy)


def test_debian_package_keeps_the_data_until_it_is_purged(dpkg: Callable[..., Path], package: Path) -> None:
    root = dpkg("--install", package)
    (user,) = [line for line in (root / "etc/passwd").read_text().splitlines() if line.startswith("smartfeeds:")]
    number = int(user.split(":")[2])
    config, data = root / "etc/smartfeeds", root / "var/lib/smartfeeds"
    assert [(path.stat().st_uid, oct(path.stat().st_mode & 0o777)) for path in (config, data)] == [
        (number, "0o750"),
        (number, "0o700"),
    ]
    (config / "smartfeeds.toml").write_text("[component]\n")
    (data / "feeds.db").write_bytes(b"data")

    dpkg("--remove", "smartfeeds")
    assert not (root / PROGRAM).exists()
    assert (config / "smartfeeds.toml").exists() and (data / "feeds.db").exists()
    dpkg("--install", package)
    assert (data / "feeds.db").read_bytes() == b"data"
    dpkg("--purge", "smartfeeds")
    assert not config.exists() and not data.exists()
