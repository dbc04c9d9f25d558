"""Tools that installed Python packages bring, through the entry-point group `ferrule.tools`."""

import os
import sys
from typing import TYPE_CHECKING

from ferrule.sources.brought import Brought
from ferrule.sources.custom.module import called, foreign, made_of

if TYPE_CHECKING:
    from ferrule.core.tool import AnyTool

GROUP = "ferrule.tools"


def load_packages() -> Brought:
    """All of them. An entry is a tool, a record, a list of these, or a function that returns one of all that."""
    if not _is_any():
        return Brought(())
    from importlib.metadata import entry_points  # 20 ms that only whoever has such a package pays

    tools: list[AnyTool] = []
    warnings: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.dist.name if one.dist else "", one.name)):
        origin = f"{entry.dist.name if entry.dist else 'a package'}:{entry.name}"
        offer = None
        with foreign() as problems:
            offer = called(entry.load())
        if problems:
            warnings.append(f"failed to load {origin}: {problems[0]}")
            continue
        offered = list(offer) if isinstance(offer, list | tuple) else [offer]
        brought = made_of(offered, origin, none="its list is empty.")
        tools += brought.tools
        warnings += brought.warnings
    return Brought(tuple(tools), tuple(warnings))


def _is_any() -> bool:
    """Does any installed package name the group? Mostly none does, and reading these files is quick."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            # Every Python has the place of a zip in its path, and hardly any has the zip.
            if folder.endswith((".zip", ".whl")) and os.path.isfile(folder):
                return True
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _names_it(os.path.join(folder, name)):
                return True
    return False


def _names_it(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read(1 << 20)
    except OSError:
        return False
