"""A service that follows another one through its hub is killed: between the answer to a push and its storing, and while
a push comes. Nothing is lost.
"""

import signal
from pathlib import Path

import aiohttp

from smartfeeds.local.process import free_port
from support.gateway import Gateway, running_gateway
from support.process import ServiceProcess
from support.publishing import DOMAIN, PublishedSite, prepare
from support.waiting import until, wait_for

CONFIG = """\
[component]
jid = "{domain}"
secret = "s"
port = 1
[store]
url = "sqlite:///{folder}/{name}.db"
[http]
listen = "127.0.0.1:{port}"
base_url = "{origin}"
[webhooks]
allowed_networks = ["127.0.0.0/8"]
[sources]
allowed_networks = ["127.0.0.0/8"]
secret_over_http = true
"""
SOURCE = """\
[[source]]
url = "{}/feeds/news/"
node = "news"
"""


async def configured(folder: Path, name: str, gateway: Gateway, *sections: str) -> tuple[Path, str]:
    """The configuration of a service behind the gateway, and a token to publish there."""
    port = free_port()
    gateway.target = f"http://127.0.0.1:{port}"
    config = folder / f"{name}.toml"
    text = CONFIG.format(domain=DOMAIN, folder=folder, name=name, port=port, origin=gateway.origin)
    config.write_text(text + "".join(sections))
    return config, await prepare(config)


def is_answered(gateway: Gateway, status: int) -> bool:
    """Whether the last request was a push with this answer."""
    line, answer = gateway.answers[-1]
    return line.startswith("POST /push/") and answer == status


async def test_killed_follower_loses_nothing(tmp_path: Path) -> None:
    """[SF-044] [WS-119] [WS-132] Its pull of a gap is held, so the push is answered and cannot be stored."""
    async with running_gateway() as before_feed, running_gateway() as before_copy, aiohttp.ClientSession() as session:
        config, token = await configured(tmp_path, "feed", before_feed)
        copy_config, _ = await configured(tmp_path, "copy", before_copy, SOURCE.format(before_feed.origin))
        site = PublishedSite(session, before_feed.target, token)
        copy = PublishedSite(session, before_copy.target, "")
        async with ServiceProcess(config) as service, ServiceProcess(copy_config) as follower:
            await service.start()
            await site.ready()
            await site.publish("one")
            await follower.start()
            await copy.ready()
            await until(lambda: "hub_question_asked" in service.said, "the log of the question")
            await copy.has("one")

            before_copy.losing = True
            await site.publish("two")
            await until(lambda: before_copy.lost == 1, "the lost push")
            before_copy.losing, before_feed.held = False, "since=cursor:"
            await site.publish("three")
            await wait_for(before_feed.holding.wait(), "the poll")
            await until(lambda: is_answered(before_copy, 202), "the push")
            assert await copy.titles() == ["one"]
            await follower.end(signal.SIGKILL)

            before_feed.release()
            await follower.start()
            await copy.ready()
            await site.publish("four")
            await copy.has("four")
            assert await copy.titles() == ["one", "two", "three", "four"]

            await follower.end(signal.SIGKILL)
            await site.publish("five")
            await until(lambda: is_answered(before_copy, 502), "the failure of the push")
            await follower.start()
            await copy.ready()
            await copy.has("five")
            assert await copy.titles() == ["one", "two", "three", "four", "five"]
            assert await follower.end() == 0
        assert "Traceback" not in service.said + follower.said
