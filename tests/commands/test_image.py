"""The image: its labels, the command that builds it, and its bill of materials. No container runtime runs here."""

import copy
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from smartfeeds import __version__

BUILD_IMAGE = "tools/build-image"
LABELS = {"title", "description", "licenses", "version", "revision", "created", "base.name"}
# Stands for Docker: writes its arguments to a file.
DOCKER = '#!/bin/sh\nprintf "%s\\n" "$@" > arguments.txt\n'


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return table | {"version": __version__}


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A repository with the files that tools/build-image reads, and a program in the place of Docker."""
    files = ("pyproject.toml", "requirements.lock", "docker/Dockerfile", "component/smartfeeds/__init__.py")
    for name in (BUILD_IMAGE, *files):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes((root / name).read_bytes())
        path.chmod((root / name).stat().st_mode)
    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    (tmp_path / "component/app.py").write_text("")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "x")):
        subprocess.run(["git", *command], cwd=tmp_path, env=git_environment(), check=True)
    return tmp_path


def git_environment() -> dict[str, str]:
    return {**os.environ, "GIT_COMMITTER_DATE": "2026-11-23T20:00:00+01:00", "GIT_CONFIG_GLOBAL": os.devnull}


Build = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def build(checkout: Path) -> Build:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{checkout / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [BUILD_IMAGE, *arguments],
            cwd=checkout,
            env={**git_environment(), "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_image_has_the_labels_of_the_open_container_initiative(root: Path, project: dict[str, Any]) -> None:
    """[OPS-090]"""
    final = (root / "docker/Dockerfile").read_text("utf-8").split("\nFROM ")[-1]
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', final))

    assert set(labels) == LABELS
    assert (labels["title"], labels["licenses"]) == (project["name"], project["license"])
    for name in ("version", "revision", "created"):
        assert labels[name] == f"${name.upper()}"
        assert f"\nARG {name.upper()}=unknown\n" in final
    assert final.startswith(labels["base.name"].rpartition("/")[2])


def test_image_is_built_for_several_architectures_with_the_facts_of_the_commit(
    build: Build, checkout: Path, project: dict[str, Any]
) -> None:
    """[OPS-090]"""
    done = build("example.org/smartfeeds")
    assert done.returncode == 0, done.stderr
    arguments = (checkout / "arguments.txt").read_text().splitlines()
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.strip()

    assert arguments[:2] == ["buildx", "build"]
    values = [arguments[at + 1] for at, name in enumerate(arguments) if name == "--build-arg"]
    assert values == [f"VERSION={project['version']}", f"REVISION={revision}", "CREATED=2026-11-23T19:00:00Z"]
    assert arguments[arguments.index("--platform") + 1] == "linux/amd64,linux/arm64"
    assert arguments[arguments.index("--tag") + 1] == f"example.org/smartfeeds:{project['version']}"
    assert arguments[arguments.index("--output") + 1] == "type=oci,dest=dist/image.tar"


def test_image_goes_to_a_registry_if_asked(build: Build, checkout: Path) -> None:
    assert build("--push", "example.org/smartfeeds:edge", PLATFORMS="linux/arm64").returncode == 0
    arguments = (checkout / "arguments.txt").read_text().splitlines()

    assert arguments[arguments.index("--tag") + 1] == "example.org/smartfeeds:edge"
    assert arguments[arguments.index("--output") + 1] == "type=registry"
    assert arguments[arguments.index("--platform") + 1] == "linux/arm64"


def test_image_of_changes_without_a_commit_is_refused(build: Build, checkout: Path) -> None:
    (checkout / "component/app.py").write_text("changed")

    done = build("smartfeeds")

    assert (done.returncode, (checkout / "arguments.txt").exists()) == (2, False)
    assert "not committed" in done.stderr
    assert "no such program" in build("smartfeeds", DOCKER="no-docker").stderr


def test_build_gets_the_files_that_it_copies_and_no_others(root: Path) -> None:
    """[OPS-090] A checkout may have secrets in it."""
    text = (root / "docker/Dockerfile").read_text("utf-8")
    copied = [part for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", text) for part in line.split()[:-1]]
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()

    assert [line for line in lines if not line.startswith(("!", "#"))] == ["*", "**/__pycache__"]
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(map(str, map(Path, copied)))


def test_bill_of_materials_names_every_pinned_package_with_its_files(root: Path, project: dict[str, Any]) -> None:
    """[OPS-090]"""
    printed = [
        subprocess.run([sys.executable, "-I", "tools/sbom.py"], cwd=root, capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1]
    bill = json.loads(printed[0])
    lock = (root / "requirements.lock").read_text("utf-8")
    pins = [line.split()[0] for line in lock.splitlines() if re.match(r"[A-Za-z0-9]", line)]

    components = {f"{one['name']}=={one['version']}": one for one in bill["components"]}
    assert len(pins) > 20
    assert sorted(components) == sorted(pins)
    hashes = [file["content"] for one in bill["components"] for file in one["externalReferences"][0]["hashes"]]
    assert len(hashes) == lock.count("--hash=sha256:")
    assert all(f"--hash=sha256:{digest}" in lock for digest in hashes)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert bill["metadata"]["component"]["version"] == project["version"]
    references = [one["bom-ref"] for one in bill["components"]]
    assert bill["dependencies"] == [{"ref": bill["metadata"]["component"]["bom-ref"], "dependsOn": references}]
    assert all(re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[\w.+!-]+", reference) for reference in references)


def test_bill_of_materials_is_valid_by_the_schema_of_cyclonedx(root: Path) -> None:
    """[OPS-090] A component without a name and an unknown license are found by it."""
    folder = root / "tests/data/cyclonedx-1.5"
    schemas = {path.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    base = schemas["bom-1.5.SNAPSHOT.schema.json"]["$id"].rpartition("/")[0]
    registry: Registry[Any] = Registry().with_resources(
        (f"{base}/{name}", Resource.from_contents(schema)) for name, schema in schemas.items()
    )
    validator = jsonschema.Draft7Validator(
        schemas["bom-1.5.SNAPSHOT.schema.json"],
        registry=registry,
        format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER,
    )
    command = [sys.executable, "-I", "tools/sbom.py"]
    bill = json.loads(subprocess.run(command, cwd=root, capture_output=True, check=True).stdout)

    assert [error.message for error in validator.iter_errors(bill)] == []
    without_name = copy.deepcopy(bill)
    del without_name["components"][0]["name"]
    other_license = copy.deepcopy(bill)
    other_license["metadata"]["component"]["licenses"][0]["license"]["id"] = "no license"
    assert not validator.is_valid(without_name)
    assert not validator.is_valid(other_license)


def test_image_contains_its_bill_of_materials(root: Path) -> None:
    """[OPS-090]"""
    dockerfile = (root / "docker/Dockerfile").read_text("utf-8")

    assert "python tools/sbom.py requirements.lock > /opt/smartfeeds/share/doc/smartfeeds/sbom.cdx.json" in dockerfile
    assert re.search(r"(?m)^COPY tools/sbom.py ", dockerfile)
