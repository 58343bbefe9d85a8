"""What doctor says of the HTTP side."""

import socket

from smartfeeds.cli.probe import CheckState, check_http
from smartfeeds.config import Settings


def with_http(**http: str) -> Settings:
    return Settings(component={"jid": "feeds.example.org", "secret": "x"}, http=http)  # type: ignore[arg-type]


async def test_http_that_is_off_is_told_so() -> None:
    assert (await check_http(with_http(listen=""))).state is CheckState.NOTE


async def test_http_without_a_public_address_says_how_to_have_one() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0"))
    assert found.state is CheckState.NOTE
    assert "http.base_url" in found.advice


async def test_http_with_its_address_is_well() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0", base_url="https://feeds.example.org"))
    assert found.state is CheckState.OK
    assert "https://feeds.example.org" in found.found


async def test_http_address_that_is_taken_must_be_changed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = await check_http(with_http(listen=f"127.0.0.1:{port}"))
    assert found.state is CheckState.FIX
    assert str(port) in found.found
