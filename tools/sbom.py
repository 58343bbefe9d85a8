"""Writes the software bill of materials of the image: the pinned packages of a lock file in CycloneDX 1.5 (JSON).

`python tools/sbom.py [LOCK]` prints it. The same lock file always gives the same text. A package for
this purpose would have more dependencies than the service.
"""

import argparse
import json
import re
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"

_PIN = re.compile(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)((?:[^\n]*\\\n)*[^\n]*)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def normal_name(name: str) -> str:
    """The name of a package as package URLs have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def components(lock: str) -> list[dict[str, Any]]:
    """A component for each pin, with the digests of its files at the package index."""
    entries = []
    for name, version, rest in _PIN.findall(lock):
        purl = f"pkg:pypi/{normal_name(name)}@{version}"
        hashes = [{"alg": "SHA-256", "content": digest} for digest in _HASH.findall(rest)]
        files = {"type": "distribution", "url": f"https://pypi.org/project/{normal_name(name)}/{version}/#files"}
        component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        entries.append(component | {"externalReferences": [files | {"hashes": hashes}]})
    return entries


def bill(lock: str, project: dict[str, Any]) -> dict[str, Any]:
    """The bill of materials of `project`, the table of pyproject.toml with the version, and the packages of a lock
    file."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    packages = components(lock)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # From the content, so that a repeated build gives the same file.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": packages,
        "dependencies": [{"ref": own, "dependsOn": [package["bom-ref"] for package in packages]}],
    }


def version() -> str:
    """The version of the program, read without an import: the image has no packages when it is built."""
    text = (ROOT / "component/smartfeeds/__init__.py").read_text("utf-8")
    (number,) = re.findall(r'(?m)^__version__ = "(.*)"$', text)
    return str(number)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="The software bill of materials of a lock file.")
    parser.add_argument("lock", type=Path, nargs="?", default=LOCK)
    lock = parser.parse_args().lock.read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    print(json.dumps(bill(lock, project | {"version": version()}), indent=2))


if __name__ == "__main__":
    main()
