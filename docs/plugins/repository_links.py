"""Builds one site from docs/ and the pages outside it, without changing how links are written.

Links are relative to the file they are in, as code hosts need them. README.md, CHANGELOG.md, SECURITY.md and
CONTRIBUTING.md become pages of the site. Any other file of the repository that a page links to
(`../studies/convergence.py`, `../LICENSE`) is copied into the site.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
COPIES = "repository"  # the folder of the site that linked files are copied to

_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and the files that pages link to."""
    root = Path(config.docs_dir).parent
    for outside, page in PAGES.items():
        files.append(File.generated(config, page, content=(root / outside).read_text(encoding="utf-8")))
    for page_file in files.documentation_pages():
        for target in _LINK.findall(page_file.content_string):
            path = _in_repository(target, page_file.src_uri)
            place = _in_site(path, root)
            if place.startswith(f"{COPIES}/") and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    root = Path(config.docs_dir).parent

    def respelt(link: re.Match[str]) -> str:
        path = _in_repository(link[1], here)
        return os.path.relpath(_in_site(path, root), os.path.dirname(here) or ".") if path else link[1]

    return _LINK.sub(respelt, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads anything from another host: the site must work offline."""
    if loaded := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} would load {loaded[0]} from another host")
    return output


def _in_repository(target: str, page: str) -> str:
    """Return the target of a link in this page, as a path from the root of the repository."""
    origin = next((outside for outside, inside in PAGES.items() if inside == page), f"docs/{page}")
    return os.path.normpath(PurePosixPath(origin).parent / target)


def _in_site(path: str, root: Path) -> str:
    """Return the place of this file in the site; a missing file is left as a broken link."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path) or (f"{COPIES}/{path}" if (root / path).is_file() else path)
