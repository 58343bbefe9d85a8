"""Settings: the file, the environment, and what is said when they are wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.app.config import SECTIONS, Settings, load
from smartfeeds.core.model import NodeKind
from smartfeeds.errors import ConfigError

MINIMAL = '[component]\njid = "feeds.example.org"\nsecret = "hush"\n'
PAGES, MIRRORS = pytest.mark.needs("pages"), pytest.mark.needs("mirrors")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def write_file(text: str) -> Path:
        path = tmp_path / "smartfeeds.toml"
        path.write_text(text)
        return path

    monkeypatch.chdir(tmp_path)
    return write_file


def test_load_minimal_file_has_the_documented_defaults(write: Any) -> None:
    settings = load(write(MINIMAL))

    assert (settings.component.host, settings.component.port) == ("127.0.0.1", 5347)
    assert settings.store.url == "sqlite:///./smartfeeds.db"
    assert settings.http.listen == "127.0.0.1:8280"
    assert settings.pubsub.default_kind is NodeKind.FEED
    assert settings.pubsub.creators == ("example.org",)
    assert settings.pubsub.admins == ()


def test_sample_has_every_key_with_its_default(root: Path, write: Any) -> None:
    text = (root / "config/smartfeeds.toml").read_text()
    sample = tomllib.loads(text)
    defaults = load(write(MINIMAL)).model_dump(mode="json")

    for section, model in SECTIONS.items():
        body = text.partition(f"\n[{section}]\n")[2].partition("\n[")[0]
        assert set(re.findall(r"^(?:# )?(\w+) = ", body, re.M)) == set(model.model_fields), section
        for key, value in sample[section].items():
            if (section, key) != ("component", "secret"):
                assert value == defaults[section][key], f"{section}.{key}"


def test_environment_wins_over_the_file(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__PORT", "5999")
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__CREATORS", '["*", "Example.NET"]')

    settings = load(write(MINIMAL + "port = 5348\n"))

    assert settings.component.port == 5999
    assert settings.pubsub.creators == ("*", "example.net")


def test_environment_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.example.org")
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET", "hush")

    settings = load(None)

    assert settings.component.reveal_secret() == "hush"
    assert settings.pubsub.creators == ("example.org",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + 'sekret_file = "x"', "component.sekret_file: there is no such key; did you mean secret_file?"),
        (MINIMAL + "[pubsubs]\nadmins = []", "pubsubs: there is no such section; did you mean pubsub?"),
        (MINIMAL + "[pubsub]\nfrobnicate = 1", "pubsub.frobnicate: there is no such key (there are: admins, "),
        (MINIMAL + "port = 70000", "component.port: must be at most 65535"),
        (MINIMAL + 'port = "many"', "component.port: "),
        (MINIMAL + "[push]\nmax_age_s = 0", "push.max_age_s: must be greater than 0"),
        (MINIMAL + "[pubsub]\npage_default = 600", "page_default is 600, above page_max"),
        (MINIMAL + '[pubsub]\nadmins = ["example.org"]', 'must be a bare JID such as "alice@example.org"'),
        (MINIMAL + '[pubsub]\ncreators = ["a@b/c"]', 'must be a bare JID, a domain or "*"'),
        (MINIMAL + '[store]\nurl = "feeds.db"', "must look like sqlite:///"),
        (MINIMAL + '[store]\nurl = "sqlite:///:memory:"', "store.url: must look like sqlite:///"),
        (MINIMAL + '[store]\nurl = "sqlite:///feeds.db?mode=ro"', "store.url: must look like sqlite:///"),
        (MINIMAL + '[http]\nlisten = "8280"', "must be HOST:PORT"),
        (MINIMAL + '[contact]\nabuse = ["abuse@example.org"]', 'contact.abuse.0: must be an address such as "mailto:'),
        (MINIMAL + '[contact]\nadmin = ["mailto:a\\u0001@b"]', "contact.admin.0: must be an address such as"),
        (MINIMAL + "[contact]\nhelp = []", "contact.help: there is no such key"),
        (MINIMAL + '[log]\nlevel = "chatty"', "log.level: must be 'debug', 'info', 'warning' or 'error', not 'chatty'"),
        pytest.param(
            MINIMAL + "[site]\nimages = true",
            "site.images: must be 'off', 'click' or 'on', not True",
            marks=PAGES,
        ),
        pytest.param(
            MINIMAL + '[[mirror]]\nnode = "n"\naddress = "x"\ndirection = "up"',
            "direction: must be 'in', ",
            marks=MIRRORS,
        ),
        pytest.param(
            MINIMAL + '[site]\nlogo = "logo.bmp"',
            "logo must be a file named *.png or *.svg, not ",
            marks=PAGES,
        ),
        pytest.param(MINIMAL + '[site]\nlogo = "logo.png"', "/logo.png: No such file", marks=PAGES),
        pytest.param(MINIMAL + '[site]\naccent = "green"', "site.accent: ", marks=PAGES),
        (MINIMAL + 'secret_file = "x"', "set exactly one of secret and secret_file"),
        ('[component]\njid = "feeds.example.org"\n', "set exactly one of secret and secret_file"),
        ('[component]\njid = "feeds.example.org"\nsecret = ""\n', "the secret is empty"),
        (
            '[component]\njid = "feeds.example.org"\nsecret_file = "none"\n',
            "/none: No such file",
        ),
        ('[component]\njid = "a@b"\nsecret = "x"\n', 'must be a domain such as "feeds.example.org"'),
        ('[component]\nsecret = "x"\n', "component.jid: is missing"),
        ("", "component: is missing"),
        ("[component", "is not TOML"),
        (f"a = {'[' * 100_000}", "is not TOML"),
        (f"a = {'1' * 5_000}", "is not TOML"),
        (MINIMAL + "[push]\nmax_age_s = inf", "push.max_age_s: must be a finite number"),
        (MINIMAL + "[limits]\npublishes_per_s = nan", "limits.publishes_per_s: must be a finite number"),
        (MINIMAL + "[store]\nlease_s = nan", "store.lease_s: must be a finite number"),
        # Of the wrong type: the operator reads the words of TOML, not those of Python.
        (MINIMAL + '[pubsub]\nadmins = "a@b.example"', 'pubsub.admins: must be a list, such as ["a.example"]'),
        (MINIMAL + "[pubsub]\nadmins = 7", 'pubsub.admins: must be a list, such as ["a.example"]'),
        (MINIMAL + "host = 7", 'component.host: must be a text in quotation marks, such as "a.example"'),
        (MINIMAL + 'port = "many"', "component.port: must be a whole number"),
        (MINIMAL + "port = 1.5", "component.port: must be a whole number"),
        (MINIMAL + "port = []", "component.port: must be a whole number"),
        (MINIMAL + '[push]\nmax_age_s = "long"', "push.max_age_s: must be a number"),
        (MINIMAL + "[push]\nmax_age_s = []", "push.max_age_s: must be a number"),
        (MINIMAL + '[pubsub]\nauto_create = "perhaps"', "pubsub.auto_create: must be true or false"),
        (MINIMAL + "[pubsub]\nauto_create = []", "pubsub.auto_create: must be true or false"),
        ("pubsub = 7\n" + MINIMAL, "pubsub: must be a section, such as [component]"),
        pytest.param(
            "mirror = 7\n" + MINIMAL,
            "mirror: must be a section that may occur several times, [[mirror]]",
            marks=MIRRORS,
        ),
    ],
)
def test_load_mistake_says_what_to_change(write: Any, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(text))

    assert message in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "SMARTFEEDS_COMPONENT__PROT",
            "1",
            "component.prot (from SMARTFEEDS_COMPONENT__PROT): there is no such key; did you mean port?",
        ),
        ("SMARTFEEDS_COMPONET__PORT", "1", "there is no section componet; did you mean component?"),
        ("SMARTFEEDS_COMPONENT__PORT", "0", "component.port (from SMARTFEEDS_COMPONENT__PORT): must be at least 1"),
        ("SMARTFEEDS_PUBSUB__ADMINS", "alice@example.org", "SMARTFEEDS_PUBSUB__ADMINS: a list must be JSON"),
        ("SMARTFEEDS_PUBSUB__ADMINS", "[" * 100_000, "SMARTFEEDS_PUBSUB__ADMINS: a list must be JSON"),
        ("SMARTFEEDS_PUBSUB__ADMINS", "", "SMARTFEEDS_PUBSUB__ADMINS: a list must be JSON"),
        ("SMARTFEEDS_PUBSUB__ADMINS", '["\\ud800"]', "SMARTFEEDS_PUBSUB__ADMINS: a list must be JSON"),
        ("SMARTFEEDS_PUBSUB", "[" * 100_000, "SMARTFEEDS_PUBSUB: a section must be a JSON object"),
        ("SMARTFEEDS_PUBSUB", '{"\\udfff": 1}', "SMARTFEEDS_PUBSUB: a section must be a JSON object"),
        ("SMARTFEEDS_STORE", "", "SMARTFEEDS_STORE: a section must be a JSON object"),
        ("smartfeeds_store", "{", "smartfeeds_store: a section must be a JSON object"),
        ("SMARTFEEDS_STORE", "[]", "store (from SMARTFEEDS_STORE): "),
        ("smartfeeds_component__port", "0", "component.port (from smartfeeds_component__port): must be at least 1"),
        ("SMARTFEEDS_COMPONENT", '{"port": 0}', "component.port (from SMARTFEEDS_COMPONENT): must be at least 1"),
        ("SMARTFEEDS_COMPONENT", '{"prot": 1}', "component.prot (from SMARTFEEDS_COMPONENT): there is no such key"),
        ("SMARTFEEDS_COMPONENT__SECRET", "\udcff", "SMARTFEEDS_COMPONENT__SECRET: the value is not UTF-8"),
        ("SMARTFEEDS_STORE__FILES", "\udcff", "SMARTFEEDS_STORE__FILES: the value is not UTF-8"),
        *(
            ("SMARTFEEDS_PUSH__MAX_AGE_S", text, "push.max_age_s (from SMARTFEEDS_PUSH__MAX_AGE_S): must be a finite")
            for text in ("inf", "1e400", "nan", "-inf")
        ),
        ("SMARTFEEDS_PUSH__MAX_AGE_S", "1e300", "push.max_age_s (from SMARTFEEDS_PUSH__MAX_AGE_S): must be at most "),
        ("SMARTFEEDS_STORE__LEASE_S", "inf", "store.lease_s (from SMARTFEEDS_STORE__LEASE_S): must be "),
        (
            "SMARTFEEDS_LIMITS__IN_FLIGHT",
            "9" * 30,
            "limits.in_flight (from SMARTFEEDS_LIMITS__IN_FLIGHT): must be at most",
        ),
        ("SMARTFEEDS_LIMITS", '{"publishes_per_s": NaN}', "limits.publishes_per_s (from SMARTFEEDS_LIMITS): must be a"),
        ("SMARTFEEDS_COMPONENT__SECRET_FILE", "x", "set exactly one of secret and secret_file"),
        ("SMARTFEEDS_PUBSUB_ADMINS", "[]", "no setting has this name; did you mean SMARTFEEDS_PUBSUB__ADMINS?"),
        ("SMARTFEEDS_FOO", "1", "SMARTFEEDS_FOO: no setting has this name; a setting is SMARTFEEDS_SECTION__KEY"),
    ],
)
def test_environment_mistake_says_what_to_change(
    write: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=re.escape(message)):
        load(write(MINIMAL))


@pytest.mark.parametrize(
    "name", ["CONFIG", "JID", "PASSWORD", "SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_8280_TCP_ADDR"]
)
def test_variables_of_commands_and_of_kubernetes_are_no_mistake(
    write: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A Service named smartfeeds puts variables of that name into every container."""
    monkeypatch.setenv(f"SMARTFEEDS_{name}", "x")

    load(write(MINIMAL))


def test_load_absent_file_says_how_to_create_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="create it with smartfeeds init"):
        load(tmp_path / "none.toml")


@pytest.mark.needs("pages")
def test_logo_is_relative_to_the_file_and_has_a_limit(write: Any, tmp_path: Path) -> None:
    logo = tmp_path / "logo.png"
    logo.write_bytes(b"\x89PNG")
    path = write(MINIMAL + '[site]\nlogo = "logo.png"')
    assert load(path).site.read_logo() == b"\x89PNG"
    logo.write_bytes(bytes(262_145))
    with pytest.raises(ConfigError, match="too large; the limit is 262,144 bytes"):
        load(path)


def test_process_without_a_link_needs_no_secret(write: Any) -> None:
    """[TOP-024]"""
    component = load(write('[component]\njid = "feeds.example.org"\nlink = "off"\n')).component
    assert (component.link, component.reveal_secret()) == ("off", "")


def test_secret_file_is_read_without_its_newline(write: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")

    settings = load(write('[component]\njid = "feeds.example.org"\nsecret_file = "secret"\n'))

    assert settings.component.reveal_secret() == "hush"


@pytest.mark.parametrize("from_environment", [False, True])
def test_relative_secret_file_is_relative_to_the_configuration_file(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_environment: bool
) -> None:
    """As in `store.url`; it depended on the working directory of the service."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "secret").write_text("hush\n")
    (tmp_path / "secret").write_text("of the working directory\n")
    line = "" if from_environment else 'secret_file = "secret"\n'
    if from_environment:
        monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET_FILE", "secret")
    config = write(f'[component]\njid = "feeds.example.org"\n{line}').rename(tmp_path / "etc" / "smartfeeds.toml")

    settings = load(config)

    assert settings.component.reveal_secret() == "hush"
    assert settings.component.secret_file == tmp_path / "etc" / "secret"


def test_relative_secret_file_without_a_configuration_file_is_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.example.org")
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET_FILE", "secret")
    (tmp_path / "secret").write_text("hush\n")

    assert load(None).component.reveal_secret() == "hush"


def test_secret_never_shows(write: Any) -> None:
    settings = load(write(MINIMAL))

    shown = f"{settings!r} {settings} {settings.component} {settings.model_dump()} {settings.model_dump_json()}"

    assert "hush" not in shown


def test_settings_are_frozen(write: Any) -> None:
    settings = load(write(MINIMAL))

    with pytest.raises(ValueError, match="frozen"):
        settings.component.port = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        settings.log = Settings.model_fields["log"].default  # type: ignore[misc]
