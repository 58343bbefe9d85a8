"""The settings: a TOML file, overridden by environment variables.

Every key is also read from `SMARTFEEDS_SECTION__KEY`; lists are given as JSON. An unknown key is an error that names
the nearest known key. A secret never appears in an error message, a log line or a `repr`. `docs/operator.md` lists all
keys.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, create_model, model_validator

from smartfeeds.app.config_store import StoreSettings
from smartfeeds.app.config_types import (
    FOLDER,
    BareJid,
    ContactAddress,
    Count,
    Creator,
    Domain,
    FilePath,
    NetworkText,
    Port,
    Seconds,
    SettingsSection,
)
from smartfeeds.core.ip_addresses import Network, parse_networks
from smartfeeds.core.model import MAX_SYNC_BYTES, NodeKind
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.errors import ConfigError
from smartfeeds.features import FEATURES
from smartfeeds.http.settings import HttpSettings
from smartfeeds.xmpp.settings import LinkSettings

S = TypeVar("S", bound=SettingsSection)

ENV_PREFIX = "SMARTFEEDS_"
ENV_DELIMITER = "__"
STORE_URL = f"{ENV_PREFIX}STORE{ENV_DELIMITER}URL"
# Room for the elements that surround a page or an item in its stanza.
ENVELOPE_BYTES = 8_192

# Command-line options that have an environment variable, and the variables that Kubernetes sets in every container when
# a Service in the same namespace is named "smartfeeds". They are not settings, so they are not reported as unknown.
_OTHER_VARIABLE = re.compile(
    r"CONFIG|JID|PASSWORD|SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?"
)

_REASONS = {
    "missing": "is missing",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    # The types of Python and of pydantic mean nothing to an operator, who writes TOML.
    "tuple_type": 'must be a list, such as ["a.example"]',
    "string_type": 'must be a text in quotation marks, such as "a.example"',
    "path_type": 'must be a path in quotation marks, such as "/var/lib/x"',
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "must be a section, such as [component]"),
}


class ComponentSettings(SettingsSection):
    """The connection to the XMPP server as an external component (XEP-0114)."""

    jid: Domain
    secret: SecretStr | None = None
    secret_file: FilePath | None = None
    host: str = "127.0.0.1"
    port: Port = 5347
    link: Literal["always", "lease", "off"] = "always"

    @model_validator(mode="after")
    def _one_secret(self) -> "ComponentSettings":
        if self.link == "off" and self.secret is None and self.secret_file is None:
            return self
        if (self.secret is None) == (self.secret_file is None):
            raise ValueError("set exactly one of secret and secret_file")
        if not self.reveal_secret():
            raise ValueError("the secret is empty; set the secret that the server has for this component")
        return self

    def reveal_secret(self) -> str:
        """Returns the shared secret for the handshake, empty without a link. Raises ValueError if `secret_file` cannot
        be read."""
        if self.secret is not None:
            return self.secret.get_secret_value()
        if self.secret_file is None:
            return ""
        try:
            return self.secret_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ValueError(f"cannot read secret_file {self.secret_file}: {reason}") from None


class PubsubSettings(SettingsSection):
    """The services for users, and the users who may create nodes or administer."""

    default_kind: NodeKind = NodeKind.FEED
    creators: tuple[Creator, ...] = ()
    contacts: tuple[Creator, ...] = ("*",)
    admins: tuple[BareJid, ...] = ()
    auto_create: bool = False
    owners_subscribe_others: bool = False
    closed_nodes: Literal["answer", "hide"] = "answer"
    # Prosody accepts stanzas up to 512 KiB. The upper bounds of these two sizes, with MAX_SYNC_BYTES and
    # ENVELOPE_BYTES, are just below.
    max_payload_size_bytes: Annotated[int, Field(ge=1024, le=380_000)] = 65_536
    page_default: Count = 50
    page_max: Count = 500
    page_bytes: Annotated[int, Field(ge=1024, le=450_000)] = 204_800

    @property
    def stanza_bytes(self) -> int:
        """The size of the largest stanza that the service sends. The XMPP server must accept stanzas of this size."""
        return max(self.page_bytes, self.max_payload_size_bytes + MAX_SYNC_BYTES) + ENVELOPE_BYTES

    @model_validator(mode="after")
    def _pages_fit(self) -> "PubsubSettings":
        if self.page_default > self.page_max:
            raise ValueError(
                f"page_default is {self.page_default}, above page_max, which is {self.page_max}; lower page_default"
            )
        return self


class ContactSettings(SettingsSection):
    """Contact addresses that the service publishes (XEP-0157)."""

    abuse: tuple[ContactAddress, ...] = ()
    admin: tuple[ContactAddress, ...] = ()
    feedback: tuple[ContactAddress, ...] = ()
    sales: tuple[ContactAddress, ...] = ()
    security: tuple[ContactAddress, ...] = ()
    status: tuple[ContactAddress, ...] = ()
    support: tuple[ContactAddress, ...] = ()


class LimitsSettings(SettingsSection):
    """Limits on the requests and the data of one user, of one domain and of all users together."""

    subscriptions_per_jid: Count = 10_000
    subscriptions_per_jid_and_node: Count = 50
    filters_per_jid: Count = 50
    nodes_per_jid: Count = 1_000
    subscriptions_per_domain: Count = 1_000_000
    nodes_per_domain: Count = 1_000_000
    contacts_per_jid: Count = 100
    contacts_per_domain: Count = 100_000
    files_bytes_per_jid: Annotated[int, Field(ge=0)] = 268_435_456
    # Most people who bring a list of another reader have fewer. Each is one request an hour or so for years.
    sources_per_jid: Annotated[int, Field(ge=0)] = 200
    publishes_per_s: Annotated[float, Field(ge=0)] = 0.0
    in_flight: Count = 4_096


class PushSettings(SettingsSection):
    """Notifications to XMPP subscribers."""

    max_age_s: Seconds = 300.0


class LogSettings(SettingsSection):
    """Format and level of the log, which is written to standard error."""

    format: Literal["console", "json"] = "console"
    level: Literal["debug", "info", "warning", "error"] = "info"


class SourcesSettings(SettingsSection):
    """Requests for documents of other web servers, and subscriptions at their hubs."""

    allowed_networks: tuple[NetworkText, ...] = ()
    push: bool = True
    secret_over_http: bool = False

    @property
    def networks(self) -> tuple[Network, ...]:
        """The `allowed_networks`."""
        return parse_networks(self.allowed_networks)


class RunSettings(SettingsSection):
    """The process of the service."""

    event_loop: Literal["asyncio", "uvloop"] = "asyncio"
    restarts: bool = False
    watchdog_s: Annotated[int, Field(ge=0, le=3_600)] = 10


class CompatSettings(SettingsSection):
    """Workarounds for clients that deviate from the standards."""

    span_cursors: bool = True


class Settings(BaseModel):
    """All settings of the service: the sections of the kernel, and those of features by their types."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)  # as `SettingsSection`

    component: ComponentSettings
    store: StoreSettings = Field(default_factory=StoreSettings)
    http: HttpSettings = HttpSettings()
    pubsub: PubsubSettings = PubsubSettings()
    contact: ContactSettings = ContactSettings()
    limits: LimitsSettings = LimitsSettings()
    push: PushSettings = PushSettings()
    link: LinkSettings = LinkSettings()
    log: LogSettings = LogSettings()
    sources: SourcesSettings = SourcesSettings()
    run: RunSettings = RunSettings()
    compat: CompatSettings = CompatSettings()

    def section(self, kind: type[S]) -> S:
        """Returns the section of a feature."""
        section: S = getattr(self, _NAMES[kind])
        return section

    def sections(self, kind: type[S]) -> tuple[S, ...]:
        """Returns the sections of a feature that may occur several times."""
        sections: tuple[S, ...] = getattr(self, _NAMES[kind])
        return sections

    @model_validator(mode="after")
    def _check_sections(self) -> "Settings":
        for section in _OF_FEATURES:
            if section.check is not None:
                section.check(self)
        return self

    @model_validator(mode="before")
    @classmethod
    def _parent_creates(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Lets the users of the component's parent domain create nodes by default."""
        component, pubsub = data.get("component"), data.get("pubsub", {})
        if not (isinstance(component, dict) and isinstance(pubsub, dict)) or "creators" in pubsub:
            return data
        parent = str(component.get("jid", "")).partition(".")[2]
        return {**data, "pubsub": {**pubsub, "creators": [parent] if parent else []}}


_OF_FEATURES = tuple(section for feature in FEATURES for section in feature.settings())
_NAMES: Mapping[type[SettingsSection], str] = {section.kind: section.name for section in _OF_FEATURES}
# mypy takes `tuple[section.kind, ...]`, which is a value here, for the type of a variable.
_FIELDS: dict[str, Any] = {
    section.name: (tuple[section.kind, ...], ()) if section.repeats else (section.kind, section.kind())  # type: ignore[name-defined]
    for section in _OF_FEATURES
}
CONFIGURATION: type[Settings] = create_model("Settings", __base__=Settings, **_FIELDS)
SECTIONS: Mapping[str, type[SettingsSection]] = {
    name: field.annotation
    for name, field in CONFIGURATION.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, SettingsSection)
}
# Sections that may occur several times, as [[name]].
LISTS: Mapping[str, type[SettingsSection]] = {section.name: section.kind for section in _OF_FEATURES if section.repeats}


def policies_of(settings: Settings) -> tuple[object, ...]:
    """Returns what the use cases of features read of their settings."""
    values = (section.policy(settings) for section in _OF_FEATURES if section.policy is not None)
    return tuple(value for value in values if value is not None)


def settings_of(**sections: Any) -> Settings:
    """Returns the settings of these sections, checked, with those of the environment, which come first.

    Raises ConfigError, and pydantic's errors.
    """
    return _settings(sections, _of_environment()[0])


def _settings(sections: dict[str, Any], environment: dict[str, Any]) -> Settings:
    merged = {
        name: {**given, **value} if isinstance(given := sections.get(name), dict) and isinstance(value, dict) else value
        for name, value in environment.items()
    }
    return CONFIGURATION(**sections | merged)


def load(path: Path | None) -> Settings:
    """Returns the settings from the file at `path`, or from the environment alone if `path` is None.

    A relative path in a setting is relative to the folder of the file, or to the working directory without a file.
    Raises ConfigError, whose text says what to change.
    """
    data, where = (_read(path), str(path)) if path else ({}, "the environment")
    _check_environment()
    environment, variables = _of_environment()
    folder = FOLDER.set(path.parent.absolute() if path else Path())
    try:
        return _settings(data, environment)
    except ValidationError as error:
        lines = "\n".join(f"  {_explain(dict(mistake), variables)}" for mistake in error.errors())
        raise ConfigError(f"{where}:\n{lines}") from None
    finally:
        FOLDER.reset(folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; create it with smartfeeds init DOMAIN") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # ValueError also for a number of too many digits
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _of_environment() -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """Returns the sections that the environment sets, and the variables of their keys. A variable has a section as
    JSON, or one of its keys. Raises ConfigError."""
    spelled = {
        variable.upper().removeprefix(ENV_PREFIX).lower(): variable
        for variable in os.environ
        if variable.upper().startswith(ENV_PREFIX)
    }
    values: dict[str, Any] = {}
    variables: dict[tuple[str, ...], str] = {}
    for name in sorted(spelled):  # a section comes before its keys, which override it
        section, delimiter, key = name.partition(ENV_DELIMITER)
        if section not in CONFIGURATION.model_fields:
            continue
        variable = spelled[name]
        text = _text(variable)
        if not delimiter:
            example = 'a list must be JSON, such as \'[{"key": "value"}]\''
            if section in SECTIONS:
                example = 'a section must be a JSON object, such as \'{"key": "value"}\''
            values[section] = value = _from_json(variable, text, example)
            variables |= (
                {(section, key): variable for key in value} if isinstance(value, dict) else {(section,): variable}
            )
        elif isinstance(keys := values.setdefault(section, {}), dict):
            field = SECTIONS[section].model_fields.get(key) if section in SECTIONS else None
            is_list = field is not None and get_origin(field.annotation) is tuple
            keys[key] = (
                _from_json(variable, text, "a list must be JSON, such as '[\"a.example\"]'") if is_list else text
            )
            variables[section, key] = variable
    return {section: value for section, value in values.items() if value is not None}, variables


def _text(variable: str) -> str:
    text = os.environ[variable]
    try:
        text.encode()
    except UnicodeEncodeError:  # Python decodes other bytes to lone surrogates, which nothing can store or send
        raise ConfigError(f"{variable}: the value is not UTF-8; write it in UTF-8") from None
    return text


def _from_json(variable: str, text: str, example: str) -> object:
    try:
        value: object = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate, which JSON may have as \ud800
    except (ValueError, RecursionError):
        raise ConfigError(f"{variable}: {example}") from None
    return value


def is_configured_by_environment() -> bool:
    """Returns whether an environment variable sets a key or a section."""
    names = (name.upper().removeprefix(ENV_PREFIX) for name in os.environ if name.upper().startswith(ENV_PREFIX))
    return any(name.partition(ENV_DELIMITER)[0].lower() in CONFIGURATION.model_fields for name in names)


def _check_environment() -> None:
    # A mistyped name would silently have no effect.
    for variable in os.environ:
        name = variable.upper()
        if not name.startswith(ENV_PREFIX):
            continue
        section, delimiter, _ = name.removeprefix(ENV_PREFIX).partition(ENV_DELIMITER)
        if delimiter and section.lower() not in SECTIONS:
            raise ConfigError(f"{variable}: there is no section {section.lower()}{_nearest(section.lower(), SECTIONS)}")
        if not (delimiter or section.lower() in CONFIGURATION.model_fields or _OTHER_VARIABLE.fullmatch(section)):
            raise ConfigError(
                f"{variable}: no setting has this name{_nearest_variable(name)}; a setting is "
                f"{ENV_PREFIX}SECTION{ENV_DELIMITER}KEY, with two underscores between section and key"
            )


def _nearest_variable(name: str) -> str:
    known = [
        f"{ENV_PREFIX}{section}{ENV_DELIMITER}{key}".upper()
        for section in SECTIONS
        for key in SECTIONS[section].model_fields
    ]
    return did_you_mean(name, known, 0.8)


def _explain(error: dict[str, Any], variables: Mapping[tuple[str, ...], str]) -> str:
    """Returns one line about one mistake. The line shows the value only if it should be one of a few words: any other
    value may be the secret."""
    place = [str(part) for part in error["loc"]]
    variable = variables.get(tuple(place[:2])) or variables.get(tuple(place[:1]))
    name = (".".join(place) or "settings") + (f" (from {variable})" if variable else "")
    kind = str(error["type"])
    if kind == "extra_forbidden":
        sections = {**SECTIONS, **LISTS}
        section = sections.get(place[0]) if len(place) > 1 else None
        known = section.model_fields if section else sections
        return f"{name}: there is no such {'key' if len(place) > 1 else 'section'}{_nearest(place[-1], known)}"
    if kind == "value_error":
        return f"{name}: {error['ctx']['error']}"
    if kind in ("literal_error", "enum"):
        return f"{name}: must be {error['ctx']['expected']}, not {error['input']!r}"
    reason = _REASONS.get(kind, "")
    if kind == "tuple_type" and len(place) == 1:
        reason = f"must be a section that may occur several times, [[{name}]]"
    return f"{name}: {reason.format(**error.get('ctx', {})) if reason else error['msg'].lower()}"


def _nearest(name: str, known: Mapping[str, object]) -> str:
    return did_you_mean(name, known, 0.5) or f" (there are: {', '.join(sorted(known))})"
