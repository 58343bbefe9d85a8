"""Targets of `campaign.fuzz` for files: importers of other servers, outlines, notices, remote calls, pages and JSON."""

import contextlib
import functools
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from campaign.fuzz_target import Target
from smartfeeds.errors import SmartfeedsError
from smartfeeds.features.authoring.markdown import render_markdown
from smartfeeds.features.callbacks.cloud_messages import (
    is_registration,
    read_notification,
    read_registration,
    read_remote_call,
)
from smartfeeds.features.callbacks.cloud_protocol import CloudRequestError
from smartfeeds.features.callbacks.remote_calls import RemoteCallError
from smartfeeds.features.documents.ess import read_either
from smartfeeds.features.hub.protocol import HubRequestError, read_request
from smartfeeds.features.moving_in import erlang_terms, lua_terms
from smartfeeds.features.moving_in.ejabberd_dump import read_ejabberd_dump
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem
from smartfeeds.features.moving_in.prosody_files import read_items, read_prosody_files
from smartfeeds.features.moving_in.prosody_sql import read_prosody
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.html_links import absolute_html
from smartfeeds.formats.json_text import load_json
from smartfeeds.formats.opml import read_outline, write_outline

DATA = Path(__file__).parents[1] / "data"
MOVING = Path(__file__).parents[1] / "features" / "moving_in" / "data"
HOST = "pubsub.localhost"  # the component of most samples
BASE = "http://example.org/feed"


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for inputs that must be files, removed at the end of the process."""
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _file(name: str, data: bytes) -> Path:
    path = Path(_folder().name) / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(data)
    return path


def _read_all(nodes: Iterable[MovedNode | MovedProblem]) -> None:
    for node in nodes:
        if isinstance(node, MovedNode):
            list(node.items)


def read_prosody_list(data: bytes) -> None:
    """The items of a node in Prosody's files."""
    list(read_items(_file("pubsub_a.list", data)))


def read_prosody_node(data: bytes) -> None:
    """The configuration of a node in Prosody's files."""
    _file(f"{HOST}/pubsub_nodes/a.dat", data)
    _read_all(read_prosody_files(str(Path(_folder().name) / HOST), HOST))


def read_dump(data: bytes) -> None:
    """A dump of ejabberd's Mnesia."""
    _read_all(read_ejabberd_dump(str(_file("mnesia.dump", data)), HOST))


def read_sql(reader: Callable[[str, str], Iterator[MovedNode | MovedProblem]], host: str) -> Callable[[bytes], None]:
    """A database that was made by a dump in SQL, as far as SQLite accepts it."""

    def read(data: bytes) -> None:
        path = Path(_folder().name) / "dump.db"
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            with contextlib.suppress(sqlite3.Error, sqlite3.Warning):
                connection.executescript(data.decode("utf-8", "replace").replace("\0", ""))
        _read_all(reader(str(path), host))

    return read


def read_opml(data: bytes) -> None:
    """Outlines: what is read can be written and read again."""
    document = read_outline(data)
    read_outline(b"".join(write_outline(document)))


def read_calls(data: bytes) -> None:
    """Calls of rssCloud."""
    for prefers_soap in (False, True):
        _, call = read_remote_call(data, prefers_soap=prefers_soap)
        if isinstance(call, RemoteCallError):
            continue
        if is_registration(call):
            with contextlib.suppress(CloudRequestError):  # refuses registrations only
                read_registration(call)
        else:
            read_notification(call)


def read_html(data: bytes) -> None:
    """Pages and texts with markup."""
    links_of(data, BASE)
    text = data.decode("utf-8", "replace")
    absolute_html(text, BASE)
    render_markdown(text, take_title=True)


def _samples(folder: Path, *patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for pattern in patterns for path in sorted(folder.glob(pattern)))


_LUA = (b'{ ["a"] = 1; "x\\n\\"\\226\\130\\172"; { 1.5e3, true, nil }; }',)
_ERLANG = (b'{pubsub_item,{<<"a">>,{1,2}},"x\\n\\x{e4}",[#{a=>-1.5e3}|b],\'q\'}.',)
_CALLS = (
    b"<methodCall><methodName>rssCloud.pleaseNotify</methodName><params><param><value>n</value></param>"
    b"<param><value><i4>80</i4></value></param><param><value>/rpc</value></param><param><value>xml-rpc</value></param>"
    b"<param><value><array><data><value>http://a.example/f</value></data></array></value></param></params></methodCall>",
    b"<SOAP-ENV:Envelope xmlns:SOAP-ENV='http://schemas.xmlsoap.org/soap/envelope/'><SOAP-ENV:Body><pleaseNotify>"
    b"<notifyProcedure>n</notifyProcedure><port>80</port><path>/</path><protocol>soap</protocol><urlList><u>x</u>"
    b"</urlList></pleaseNotify></SOAP-ENV:Body></SOAP-ENV:Envelope>",
    b"<methodCall><methodName>n</methodName><params><param><value>http://a.example/f</value></param></params></methodCall>",
)
_PAGES = (
    b"<html><head><link rel='alternate' type='application/rss+xml' href='/f'></head>"
    b"<body><a href='x'>y</a></body></html>",
    b"# A\n\n*b* [c](d \"e\") ![f](<g>)\n\n> h\n\n1. i\n\n```\nj\n```\n<b onclick='k'>l</b>\n",
)
_HUB = (
    b"hub.mode=subscribe&hub.topic=http%3A%2F%2Fa.example%2Ff&hub.callback=https%3A%2F%2Fb.example%2Fc&hub.secret=s"
    b"&hub.lease_seconds=864000",
    b"hub.mode=publish&hub.url=http%3A%2F%2Fa.example%2Ff",
)
_JSON = (b'{"a": [1, -2.5e3, true, null, "\\u00fc\\ud83d\\ude00", {"b": {}}]}', b"[[[[]]]]")
_OPML = (
    b"<opml version='2.0'><head><title>t</title></head><body><outline text='a' type='rss' xmlUrl='http://a.example/f'>"
    b"<outline text='b' created='Mon, 09 May 2011 12:00:00 GMT'/></outline></body></opml>",
)
_TERM_TOKENS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"<<",
    b">>",
    b"=",
    b";",
    b"1e",
    b"--[[",
    b"#{",
    b"'",
    b"%",
    b".\n",
)
_SQL_TOKENS = (b"'", b"''", b"NULL", b"X'00'", b"-1", b"9" * 30, b"),(", b";", b"<", b"{", b"\\n")
_XML_TOKENS = (b"<", b">", b"&x;", b"]]>", b"<!--", b"<?x?>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\x00", b"\xff")
_TEXT_TOKENS = (b"&", b"=", b"%", b"%00", b"\xff", b"9" * 40, b"[", b"](", b"<", b"`", b"\n", b'"', b"{", b"\\u")

TARGETS: dict[str, Target] = {
    "lua": Target(lua_terms.parse_table, _LUA, _TERM_TOKENS),
    "erlang": Target(erlang_terms.parse_term, _ERLANG, _TERM_TOKENS),
    "prosody items": Target(read_prosody_list, _samples(MOVING, "prosody-*/pubsub*/*.list"), _TERM_TOKENS),
    "prosody nodes": Target(read_prosody_node, _samples(MOVING, "prosody-*/pubsub*/pubsub_nodes/*.dat"), _TERM_TOKENS),
    "ejabberd dump": Target(read_dump, _samples(MOVING, "ejabberd-*/*.dump"), _TERM_TOKENS),
    "ejabberd sql": Target(read_sql(read_ejabberd, HOST), _samples(MOVING, "ejabberd-*.sqlite.sql"), _SQL_TOKENS),
    "prosody sql": Target(
        read_sql(read_prosody, "sql.localhost"), _samples(MOVING, "prosody-*.sqlite.sql"), _SQL_TOKENS
    ),
    "outlines": Target(read_opml, _OPML, _XML_TOKENS),
    "notices": Target(read_either, _samples(DATA / "ess", "*.ess"), (b"\n", b",", b"-", b"9" * 30, b"\xff", b"!")),
    "remote calls": Target(read_calls, _CALLS, _XML_TOKENS, (RemoteCallError,)),
    "hub requests": Target(read_request, _HUB, _TEXT_TOKENS, (HubRequestError,)),
    "pages": Target(read_html, _PAGES, (*_TEXT_TOKENS, *_XML_TOKENS), (SmartfeedsError,)),
    "json": Target(load_json, _JSON, _TEXT_TOKENS),
}
