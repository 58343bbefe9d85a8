"""Writes the copyright file of the Debian package (machine-readable, 1.0): the program and each bundled package.

`python tools/copyright.py LIBRARY` reads the packages that are installed in the folder. It fails if a package has no
text of its licence, or if a shared library is bundled that it does not know.
"""

import argparse
import re
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path(__file__).parents[1]
PLACE: Final = "usr/lib/smartfeeds"


class Bundled(NamedTuple):
    """A library of another project in the files of a package. Its licence is a name of SPDX."""

    name: str
    home: str
    holder: str
    licence: str


# The shared libraries of psycopg-binary, by the start of their file names.
_KERBEROS: Final = Bundled(
    "MIT Kerberos", "https://web.mit.edu/kerberos/", "Massachusetts Institute of Technology", "MIT"
)
_OPENSSL: Final = Bundled("OpenSSL", "https://openssl-library.org/", "The OpenSSL Project Authors", "Apache-2.0")
_OPENLDAP: Final = Bundled("OpenLDAP", "https://www.openldap.org/", "The OpenLDAP Foundation", "OLDAP-2.8")
SHARED: Final = {
    "libcom_err": Bundled("com_err", "https://e2fsprogs.sourceforge.net/", "MIT Student Information Board", "MIT"),
    "libcrypt-": Bundled("libxcrypt", "https://github.com/besser82/libxcrypt", "Björn Esser and others", "LGPL-2.1+"),
    "libcrypto": _OPENSSL,
    "libssl": _OPENSSL,
    "libgssapi_krb5": _KERBEROS,
    "libk5crypto": _KERBEROS,
    "libkrb5": _KERBEROS,
    "libkeyutils": Bundled("keyutils", "https://git.kernel.org/", "Red Hat, Inc.", "LGPL-2+"),
    "liblber": _OPENLDAP,
    "libldap": _OPENLDAP,
    "libpq": Bundled("PostgreSQL", "https://www.postgresql.org/", "PostgreSQL Global Development Group", "PostgreSQL"),
    "libsasl2": Bundled(
        "Cyrus SASL", "https://www.cyrusimap.org/sasl/", "Carnegie Mellon University", "BSD-3-Clause-Attribution"
    ),
}
# Libraries that are linked into the modules of packages.
LINKED: Final = {
    "aiohttp": "llhttp (MIT)",
    "cffi": "libffi (MIT)",
    "lxml": "libxml2, libxslt (MIT), zlib (Zlib), libiconv (LGPL-2.1+)",
    "nh3": "ammonia, html5ever, PyO3 and other crates of Rust (MIT OR Apache-2.0)",
    "pycares": "c-ares (MIT)",
    "pydantic_core": "PyO3 and other crates of Rust (MIT OR Apache-2.0)",
    "slixmpp": "jid (MPL-2.0), PyO3 (MIT OR Apache-2.0)",
}
_HOMES: Final = ("home-page", "homepage", "source", "source code", "github", "repository", "documentation")
_TEXT: Final = re.compile(r"(?i)(licen[cs]e|copying|notice)")
_HOLDER: Final = re.compile(r"(?im)^[ \t*#]*(?:copyright|\(c\))[ \t].*\d{4}.*$")


class Package(NamedTuple):
    """An installed package: its folders and files, and the texts of its licence."""

    name: str
    version: str
    home: str
    licence: str
    author: str
    places: tuple[str, ...]
    text: str


def read_package(folder: Path) -> Package:
    """The package of a folder `*.dist-info`. Raises SystemExit if it has no text of its licence."""
    meta = HeaderParser().parsestr((folder / "METADATA").read_text("utf-8"))
    texts = sorted(path for path in folder.rglob("*") if path.is_file() and _TEXT.search(path.name))
    if not texts:
        raise SystemExit(f"tools/copyright.py: {folder.name} has no text of its licence")
    urls = {name.lower(): url for name, url in (text.split(", ", 1) for text in meta.get_all("Project-URL", []))}
    urls["home-page"] = meta["Home-page"] or ""
    home = next(filter(None, map(urls.get, _HOMES)), f"https://pypi.org/project/{meta['Name']}/")
    classifiers = [text.rpartition(" :: ")[2] for text in meta.get_all("Classifier", []) if text.startswith("License")]
    first_line = (meta["License"] or "").partition("\n")[0]
    licence = meta["License-Expression"] or first_line or " or ".join(classifiers) or "see below"
    rows = [line.partition(",")[0] for line in (folder / "RECORD").read_text("utf-8").splitlines()]
    tops = {row.partition("/")[0] if "/" in row else row for row in rows if not row.startswith(("..", "__pycache__"))}
    return Package(
        meta["Name"],
        meta["Version"],
        home,
        licence if re.search(" (AND|OR|or) ", licence) else licence.replace(" ", "-"),
        meta["Author"] or meta["Author-email"] or meta["Maintainer"] or "its authors",
        tuple(sorted(tops)),
        "\n\n".join(path.read_text("utf-8", "replace").strip() for path in texts),
    )


def indented(text: str) -> str:
    """A text as the value of a field: each line begins with a blank, and an empty one is a dot."""
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.splitlines())


def stanza(files: list[str], holder: str, licence: str, text: str, comment: str = "") -> str:
    """A paragraph of the file."""
    lines = [f"Files: {files[0]}", *(f"       {name}" for name in files[1:])]
    lines += [f"Copyright: {holder}"]
    lines += [f"Comment: {comment}"] if comment else []
    return "\n".join([*lines, f"License: {licence}", indented(text)]) + "\n"


def holders_of(text: str, author: str) -> str:
    """Those who are named in the text of a licence, else the author."""
    names = dict.fromkeys(match[0].strip(" *#\t") for match in _HOLDER.finditer(text))
    return "\n           ".join(names) or author


def stanzas(library: Path) -> Iterator[str]:
    """The paragraphs of all files."""
    yield "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: smartfeeds\n"
    own = (ROOT / "LICENSE").read_text("utf-8")
    yield stanza(["*"], holders_of(own, ""), "MIT", own.partition("\n\n")[2])
    for folder in sorted(library.glob("*.dist-info")):
        package = read_package(folder)
        if package.name == "smartfeeds":
            continue
        files = [f"{PLACE}/{top}{'/*' if (library / top).is_dir() else ''}" for top in package.places]
        linked = LINKED.get(package.name.replace("-", "_").lower(), "")
        comment = f"{package.name} {package.version}, {package.home}" + (f"; contains {linked}" if linked else "")
        yield stanza(files, holders_of(package.text, package.author), package.licence, package.text, comment)
    for path in sorted(path for folder in library.glob("*.libs") for path in folder.iterdir()):
        known = next((bundled for start, bundled in SHARED.items() if path.name.startswith(start)), None)
        if known is None:
            raise SystemExit(f"tools/copyright.py: the licence of {path.name} is not known; add it to SHARED")
        text = f"The text is at {known.home} and at https://spdx.org/licenses/{known.licence}.html"
        name = path.relative_to(library)
        yield stanza([f"{PLACE}/{name}"], known.holder, known.licence, text, f"{known.name}, {known.home}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="The copyright file of the Debian package.")
    parser.add_argument("library", type=Path, help="The folder with the installed packages.")
    print("\n".join(stanzas(parser.parse_args().library)), end="")


if __name__ == "__main__":
    main()
