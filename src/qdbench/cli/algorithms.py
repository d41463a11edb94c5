"""The command `algorithms`: all algorithms that can be run."""

from __future__ import annotations

from typing import Any

from qdbench.cli import terminal
from qdbench.cli.app import AsJson, app
from qdbench.errors import InvalidInput


@app.command()
def algorithms(as_json: AsJson = False) -> None:
    """List the algorithms with their options, defaults and sources."""
    from qdbench.algorithms import registry

    found = [_about(name, where) for name, where in registry.algorithms().items()]
    if as_json:
        return terminal.print_json(found)
    for entry in found:
        terminal.out.print(f"{entry['algorithm']}", style="bold")
        terminal.out.print(f"  {entry['what']}")
        if entry["source"]:
            terminal.out.print(f"  Source: {entry['source']}")
        for name, option in entry["options"].items():
            terminal.out.print(f"  --set {name}={option['default']}  ({option['type']})")
    if not any(entry["algorithm"] == "cma_me" for entry in found):
        terminal.out.print("With the extra `ribs` also: ribs_map_elites, cma_me, cma_mae.")
    return terminal.out.print("Next: qdbench run ant_omni --algorithm map_elites --evaluations 20000")


def _about(name: str, where: str) -> dict[str, Any]:
    from qdbench.algorithms import registry

    try:
        factory = registry.find(name)
    except InvalidInput as error:  # one broken plug-in must not hide the other algorithms
        return {"algorithm": name, "class": where, "what": str(error), "source": "", "options": {}}
    lines = [line.strip() for line in (factory.__doc__ or "").strip().splitlines()] or [""]
    sources = [line.removeprefix("Source: ") for line in lines if line.startswith("Source: ")]
    options = {
        option.name: {"type": option.type_name, "default": option.default}
        for option in registry.options(factory).values()
    }
    source = sources[0] if sources else ""
    return {"algorithm": name, "class": where, "what": lines[0], "source": source, "options": options}
