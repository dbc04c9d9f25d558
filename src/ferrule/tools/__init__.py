"""The built-in tools, one file each. The list is written out; importing registers nothing."""

from ferrule.core.tool import AnyTool


def builtin() -> tuple[AnyTool, ...]:
    """Every built-in tool, in the order in which people meet them."""
    from ferrule.tools.files.edit import Edit  # noqa: PLC0415 - importing the package must not load every tool
    from ferrule.tools.files.read import Read  # noqa: PLC0415
    from ferrule.tools.files.write import Write  # noqa: PLC0415
    from ferrule.tools.search.glob import Glob  # noqa: PLC0415
    from ferrule.tools.search.grep import Grep  # noqa: PLC0415
    from ferrule.tools.shell.shell import Shell  # noqa: PLC0415

    return (Read(), Edit(), Write(), Shell(), Glob(), Grep())
