"""A page as a tree, and the laws every report obeys."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "link", "img", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    inside: list[Element | str] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Element]:
        for child in self.inside:
            if isinstance(child, Element):
                if child.tag in tags or not tags:
                    yield child
                yield from child.all(*tags)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.inside)


class Parser(HTMLParser):
    """A tree; an element that is not closed where it should be is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> is there twice"
        element = Element(tag, dict(attrs))
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(page: str) -> Element:
    parser = Parser()
    parser.feed(page)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def require_sound(root: Element) -> None:
    """The laws of every report."""
    everything = list(root.all())
    ids = [element.attributes["id"] for element in everything if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    named = [element.attributes.get("aria-labelledby") for element in everything]
    assert set(filter(None, named)) <= set(ids)
    for element in everything:
        for name, value in element.attributes.items():
            assert not name.startswith("on"), name
            assert name not in ("src", "href") or str(value).startswith(("data:", "#")), value
            assert "url(" not in str(value)
    assert {str(a.attributes["href"]).removeprefix("#") for a in root.all("a")} <= set(ids)
    assert [len(list(root.all(tag))) for tag in ("h1", "header", "nav", "main", "footer", "title")] == [1] * 6
    assert not list(root.all("iframe", "object", "embed", "base"))
    _require_only_the_player(root)
    assert next(root.all("html")).attributes["lang"] == "en"
    assert all(str(img.attributes["alt"]).strip() for img in root.all("img"))
    for table in root.all("table"):
        assert next(table.all("caption")).text.strip()
        assert all("scope" in th.attributes for th in table.all("th"))
        widths = {sum(1 for _ in row.all("th", "td")) for row in list(table.all("tr"))}
        assert max(widths) == len(list(next(table.all("thead")).all("th")))
    style = next(root.all("style")).text
    assert not re.search(r"url\(|@import|https?:|file:", style)


def _require_only_the_player(root: Element) -> None:
    """No script but the player, which the page's policy allows by its hash."""
    (policy,) = (meta for meta in root.all("meta") if "http-equiv" in meta.attributes)
    allowed = re.findall(r"script-src 'sha256-([^']+)'", str(policy.attributes["content"]))
    scripts = [one for one in root.all("script") if one.attributes.get("type") != "application/json"]
    assert [b64encode(sha256(one.text.encode()).digest()).decode() for one in scripts] == allowed
    for one in root.all("script"):
        assert set(one.attributes) <= {"type", "id"}
    assert all(json.loads(one.text) for one in root.all("script") if one.attributes)


def rows_of(root: Element, caption: str) -> list[list[str]]:
    """Return a table's rows; cells that reach over several rows are empty in all but the first."""
    found = [table for table in root.all("table") if next(table.all("caption")).text == caption]
    assert len(found) == 1, caption
    n = len(list(next(found[0].all("thead")).all("th")))
    rows = [
        [cell.text for cell in row.all("th", "td")]
        for body in found[0].all("tbody")
        for row in body.all("tr")
    ]
    return [[""] * (n - len(row)) + row for row in rows]


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def browse(path: Path, folder: Path, *arguments: str) -> str:
    if CHROMIUM is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on the PATH")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--log-net-log={folder / 'net.json'}", "--enable-logging=stderr", *arguments, path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout
