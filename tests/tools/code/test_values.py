"""Values that a server may have taken from files which nobody may read are left out of what it says."""

import pytest
from tests.rows import each_row
from tests.tools.code.asking import Asking, one_server, path_with_servers

from ferrule.core.errors import ToolFailure
from ferrule.tools.lsp.answers import without_values

SOURCE = "mode = 'fast'\nyear = 2026\n"


@each_row(
    ("said", "left"),
    [
        pytest.param('```python\nLiteral["TOP SECRET"]\n```', '```python\nLiteral["…"]\n```', id="value"),
        pytest.param("```ts\nconst x: 'TOP\\' SECRET'\n```", "```ts\nconst x: '…'\n```", id="escape"),
        pytest.param("```ts\nconst x: `TOP SECRET`\n```\ntext", "```ts\nconst x: `…`\n```\ntext", id="backticks"),
        pytest.param('```\nx: "TOP SECRET...\n```', '```\nx: "…"\n```', id="cut-off"),
        pytest.param('```\nx: "TOP SECRET', '```\nx: "…"', id="without-an-end"),
        pytest.param("```\nLiteral[12345]\n```", "```\nLiteral[…]\n```", id="number"),
        pytest.param("```\nLiteral['fast', 2026, 7]\n```", "```\nLiteral['fast', 2026, 7]\n```", id="known"),
        pytest.param("It's what's \"said\".", "It's what's \"said\".", id="prose"),
        pytest.param("````\n'a'\n```\n'b'\n````\n'c'", "````\n'a'\n```\n'…'\n````\n'c'", id="longer-fence"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_values_are_left_out_unless_they_stand_in_the_file(said, left):
    assert without_values(said, SOURCE) == left


@pytest.mark.parametrize("server", ["ty", "basedpyright"])
@pytest.mark.parametrize("is_confined", [True, False], ids=["confined", "free"])
async def test_no_hover_tells_what_stands_in_a_file_that_may_not_be_read(tmp_path, monkeypatch, server, is_confined):
    monkeypatch.setenv("PATH", path_with_servers())
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in ("hidden.py", "denied.py"):
        (folder / name).write_text('KEY = "TOP SECRET"\n\n\ndef told() -> None:\n    """TOP SECRET"""\n')
    main = "import hidden\nimport denied\n\none = hidden.KEY\ntwo = denied.KEY\ndenied.told()\n"
    (folder / "main.py").write_text(main)
    ask = Asking(
        folder, one_server(server, confined=is_confined), state=tmp_path / "state", denied=("hidden.py", "denied.py")
    )
    said = []
    for line, character in ((1, 8), (2, 8), (4, 1), (4, 7), (4, 14), (5, 1), (5, 7), (5, 14), (6, 8)):
        try:
            said.append((await ask("hover", "main.py", line, character)).text)
        except ToolFailure as failure:
            said.append(failure.message)
    others = ("goToDefinition", "findReferences", "workspaceSymbol", "incomingCalls", "outgoingCalls")
    said += [repr(await ask(operation, "main.py", 6, 8)) for operation in others]
    await ask.close()

    assert "SECRET" not in "\n".join(said)
