"""The documentation site and the citation keep up with the code; `make docs` builds the site itself."""

from __future__ import annotations

import re

import griffe
import pytest
import yaml

import qdbench
from conftest import ROOT

REFERENCE = sorted((ROOT / "docs/reference").glob("*.md"))
PACKAGE = griffe.load("qdbench", search_paths=[ROOT / "src"])


def test_the_reference_has_every_public_name_once() -> None:
    shown = [
        name
        for page in REFERENCE
        for name in re.findall(r"^::: qdbench\.(\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert sorted(shown) == sorted(qdbench.__all__), "a line `::: qdbench.NAME` in docs/reference for each"


@pytest.mark.parametrize("name", qdbench.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    """From the source: at run time, a dictionary or a dataclass without one would show its type's."""
    assert PACKAGE[name].has_docstring, f"qdbench.{name} needs a docstring"


def test_every_page_is_in_the_navigation() -> None:
    navigation = re.findall(r": ([\w/-]+\.md)\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    plain = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(navigation) == sorted(
        [*plain, "index.md", "changelog.md", "contributing.md", "reporting.md"]
    )


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == ("qdbench", qdbench.__version__)
