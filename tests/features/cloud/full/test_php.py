"""The cloud with a client and a receiver in PHP, which speak SOAP."""

import asyncio
from pathlib import Path

from support.component import ALICE
from support.waiting import until
from support.web import WebStarter

SITE = "http://feeds.example"
NOTES = f"{SITE}/feeds/notes.rss"

PHP_SERVER = """<?php
class Reader {
    function notify($url) { file_put_contents(__DIR__ . '/calls', $url . "\\n", FILE_APPEND); return true; }
}
$server = new SoapServer(null, ['uri' => 'http://feeds.example/']);
$server->setClass('Reader');
$server->handle();
"""
PHP_CLIENT = """<?php
$client = new SoapClient(null, ['location' => $argv[1], 'uri' => 'http://feeds.example/']);
try {
    $urls = array_slice($argv, 3);
    var_dump($client->__soapCall('rssPleaseNotify', ['notify', (int) $argv[2], '/server.php', 'soap', $urls]));
} catch (SoapFault $fault) { echo $fault->faultcode, ' ', $fault->getMessage(); }
"""


async def test_soap_of_php(start_web: WebStarter, tmp_path: Path, unused_tcp_port: int) -> None:
    """[RC-017] [RC-046] [RSS-019] [RSS-023] As client and as receiver."""
    site = await start_web(http={"base_url": SITE}, webhooks={"allowed_networks": ["127.0.0.0/8"]})
    await site.component.create(ALICE, "notes", access_model="open")
    (tmp_path / "server.php").write_text(PHP_SERVER)
    (tmp_path / "client.php").write_text(PHP_CLIENT)
    address = f"127.0.0.1:{unused_tcp_port}"
    server = await asyncio.create_subprocess_exec(
        *("php", "-S", address, "-t", str(tmp_path)), stderr=asyncio.subprocess.PIPE
    )
    assert server.stderr is not None
    try:
        while b"started" not in await server.stderr.readline():
            assert server.returncode is None

        async def register(*urls: str) -> str:
            arguments = (f"{site.origin}/rsscloud/soap", str(unused_tcp_port), *urls)
            client = await asyncio.create_subprocess_exec(
                "php", str(tmp_path / "client.php"), *arguments, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await client.communicate()
            return output.decode().strip()

        assert await register(NOTES) == "bool(true)"
        assert (tmp_path / "calls").read_text().split() == [NOTES]
        assert await register("http://other.example/") == "bool(false)"
        await site.component.publish(ALICE, "notes", "1")
        await until(lambda: (tmp_path / "calls").read_text().split() == [NOTES, NOTES], "the call")
    finally:
        server.terminate()
        await server.wait()
