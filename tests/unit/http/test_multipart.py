"""The header Content-Disposition of the parts of a body (RFC 7578 4.2)."""

import warnings
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader, content_disposition_filename, parse_content_disposition
from multidict import CIMultiDict, CIMultiDictProxy

from smartfeeds.http.multipart import _Part

READ = [
    "",
    "form-data",
    'form-data; name="file"; filename="photo.jpg"',
    "form-data; name=file; filename=photo.jpg",
    'form-data ; NAME = "a b" ; filename = "x"',
    'form-data; name="f"; filename="C:\\\\dir\\\\x.jpg"',
    'form-data; name="f"; filename="../../x"',
    'form-data; name="f"; filename="//x"',
    'form-data; name="f"; filename="a \\"quoted\\" name"',
    'form-data; name="f"; filename="ends with \\"',
    'form-data; name="f"; filename="a;b"',
    'form-data; name="f"; filename="\N{SNOWMAN}.jpg"',
    'form-data; name="f"; filename=""',
    "form-data; name=f; filename*=UTF-8''%e2%98%83.jpg; filename=x",
    "form-data; name=f; filename*='en'x",
    "form-data; name=f; filename*0=a; filename*1=b",
    "form-data; name=f; filename*0*=UTF-8''%e2%98; filename*1*=%83",
]
FAULTS = [
    "form data; name=f",
    "; name=f",
    "form-data; name",
    "form-data; name=f;",
    "form-data; name=f; name=g",
    "form-data; name=a b",
    "form-data; na me=f",
    'form-data; name="f" x',
    "form-data; name=\N{SNOWMAN}",
    "form-data; name=f; filename*=x",
    "form-data; name=f; filename*=UTF-9''%61",
    "form-data; name=f; filename*=UTF-8''%ff",
    "form-data; name=f; filename*0*=UTF-8''%ff",
]


def names(header: str) -> tuple[str | None, str | None]:
    headers = {"Content-Disposition": header} if header else {}
    part = _Part(b"--x", CIMultiDictProxy(CIMultiDict(headers)), StreamReader(Mock(), 65_536))
    return part.name, part.filename


@pytest.mark.parametrize("header", READ)
async def test_names_are_read_as_the_library_reads_them(header: str) -> None:
    _, parameters = parse_content_disposition(header)
    assert names(header) == tuple(content_disposition_filename(parameters, name) for name in ("name", "filename"))


async def test_name_may_have_any_number_of_semicolons() -> None:
    assert names('form-data; name="f"; filename="a;b;c;d"') == ("f", "a;b;c;d")


@pytest.mark.parametrize("header", FAULTS)
async def test_fault_is_an_error_and_changes_no_filter_of_the_process(
    header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads run meanwhile, and their warnings must not become errors."""
    with monkeypatch.context() as patch:
        for function in ("catch_warnings", "simplefilter", "filterwarnings", "warn"):
            patch.setattr(warnings, function, Mock(side_effect=AssertionError(function)))
        with pytest.raises(ValueError, match=r"^Content-Disposition: "):
            names(header)
