"""Make docs/tutorial.ipynb from docs/tutorial.md: `python docs/plugins/tutorial_notebook.py`.

Text becomes text cells, Python blocks and commands become code cells. The first Python block is the file
`my_algorithm.py`. Blocks marked `sh` are shown, not run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ALGORITHM = "my_algorithm.py"
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook(page: str) -> dict[str, Any]:
    """Return the notebook of a Markdown page, as JSON holds it."""
    cells: list[dict[str, Any]] = []
    end, n_python = 0, 0
    for block in _BLOCK.finditer(page):
        cells.append(_cell("markdown", page[end : block.start()], len(cells)))
        language, code = block.groups()
        if language == "console":
            code = "".join(f"!{line.removeprefix('$ ')}\n" for line in code.splitlines())
        elif n_python == 0:
            code = f"%%writefile {ALGORITHM}\n{code}"
        n_python += language == "python"
        cells.append(_cell("code", code, len(cells)))
        end = block.end()
    cells.append(_cell("markdown", page[end:], len(cells)))
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    shown = [cell for cell in cells if cell["source"]]
    return {"cells": shown, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    outputs: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    lines = text.strip().splitlines(keepends=True)
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines, **outputs}


def text(page: str) -> str:
    """Return the text of the notebook's file."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    made = text((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    (DOCS / "tutorial.ipynb").write_text(made, encoding="utf-8")
