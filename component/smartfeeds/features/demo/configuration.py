"""The configuration of the services that demonstrations start."""

from pathlib import Path

_SERVICE_CONFIG = """\
# Written by smartfeeds demo at each start.
[component]
jid = "{service}"
secret = "{secret}"
port = {port}

[store]
url = "sqlite:///{folder}/feeds.db"

[http]
listen = "{listen}"
base_url = "{base_url}"

[pubsub]
admins = ["{owner}"]

[link]
retry_first_s = 0.1

[log]
level = "{log_level}"
"""
OWNER = "alice@localhost"  # of the feeds of all demonstrations


def write_config(
    folder: Path, service: str, secret: str, port: int, *, listen: str = "", log_level: str = "warning"
) -> Path:
    """Writes the configuration of a service with its database in `folder`. Returns the path of the file."""
    path = folder / "smartfeeds.toml"
    path.touch(mode=0o600)  # it contains the secret
    values = {"service": service, "secret": secret, "port": port, "listen": listen, "log_level": log_level}
    # Feeds name a hub and a cloud only at an address of their own.
    base_url = f"http://{listen}" if listen else ""
    path.write_text(_SERVICE_CONFIG.format(**values, base_url=base_url, folder=folder, owner=OWNER))
    return path
