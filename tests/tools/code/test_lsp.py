"""The lsp tool over a server that answers what each test says: positions, bounds, what is shown and what is not."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tools.code.asking import Asking, answering, rows
from tests.workspace.languages.servers_world import fake, misbehaving

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.dialects.outcome_words import code
from ferrule.files.guard import Guard
from ferrule.settings import LanguageServer, LspSettings
from ferrule.tools.lsp import InText
from ferrule.tools.lsp.answers import Sources

DEFINITION = "textDocument/definition"
TEXT = "first = second\n\n  third(4)  \n"


def at(path: Path | str, line: int, unit: int = 0) -> dict[str, Any]:
    """A `Location`."""
    uri = path if isinstance(path, str) else path.as_uri()
    return {"uri": uri, "range": {"start": {"line": line, "character": unit}, "end": {"line": line, "character": unit}}}


def item(path: Path, name: str, line: int) -> dict[str, Any]:
    """A `CallHierarchyItem`."""
    span = at(path, line)["range"]
    return {"name": name, "kind": 12, "uri": path.as_uri(), "range": span, "selectionRange": span}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.fake").write_text(TEXT)
    return folder


@pytest.fixture
async def opened(folder, tmp_path):
    """Opens a session with a server that answers this; all of them are closed at the end."""
    every: list[Asking] = []

    def open_one(answers: dict[str, Any] | None = None, *, lacks: tuple[str, ...] = (), denied: tuple[str, ...] = ()):
        settings = answering(answers or {}, lacks)
        every.append(Asking(folder, settings, state=tmp_path / "state", denied=denied))
        return every[-1]

    yield open_one
    for one in every:
        await one.close()


@pytest.mark.parametrize(
    ("line", "character", "message"),
    [
        pytest.param(0, 1, "line: 0 is not a line of a.fake, which has 3 lines.", id="line-0"),
        pytest.param(4, 1, "line: 4 is not a line of a.fake, which has 3 lines.", id="line-past-the-end"),
        pytest.param(-1, 1, "line: -1 is not a line of a.fake, which has 3 lines.", id="line-below-0"),
        pytest.param(
            1, 0, "character: 0 is not in line 1 of a.fake, which has 14 characters: 'first = second'", id="character-0"
        ),
        pytest.param(
            3,
            14,
            "character: 14 is not in line 3 of a.fake, which has 12 characters: 'third(4)'",
            id="character-past-the-end",
        ),
    ],
)
async def test_a_position_that_is_none_is_an_error_that_helps(opened, line, character, message):
    with pytest.raises(BadArguments) as failure:
        await opened()("goToDefinition", "a.fake", line, character)

    assert failure.value.message == message


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("gone.fake", "not-found", id="gone"),
        pytest.param(".", "is-folder", id="workspace"),
        pytest.param("sub", "is-folder", id="folder"),
        pytest.param("pipe.fake", "is-folder", id="pipe"),
        pytest.param("raw.fake", "binary", id="binary"),
        pytest.param("large.fake", "too-large", id="large"),
    ],
)
async def test_what_is_no_source_file_is_refused(opened, folder, name, code):
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe.fake")
    (folder / "raw.fake").write_bytes(b"\0\1\2" * 100)
    with (folder / "large.fake").open("wb") as file:
        file.truncate(9 << 20)

    with pytest.raises(ToolFailure) as failure:
        await opened()("hover", name)

    assert failure.value.code == code


async def test_a_line_without_a_name_is_an_error(opened):
    with pytest.raises(ToolFailure) as failure:
        await opened()("hover", "a.fake", 2)

    assert failure.value.code == "no-name"


async def test_it_reads_the_file_and_the_workspace_and_looks_at_a_process(opened, folder):
    ask = opened({"textDocument/hover": None})
    await ask("hover", "a.fake")

    assert ask.touches == (
        Access.read(folder / "a.fake"),
        Access.read(folder),
        Access.process("language server for .fake", mode="read"),
    )
    assert any("fake" in said for said in ask.said)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(None, "Nothing is known about `first` at a.fake:1:1.", id="nothing"),
        pytest.param({"contents": ""}, "Nothing is known about `first` at a.fake:1:1.", id="empty"),
        pytest.param({"contents": {"kind": "markdown", "value": "**x**"}}, "**x**", id="markdown"),
        pytest.param({"contents": "x" * 9_000}, "x" * 8_000 + "\n\n(1,000 more characters are not shown.)", id="long"),
    ],
)
async def test_a_hover_reads_like_this(opened, answer, text):
    ask = opened({"textDocument/hover": answer, "textDocument/definition": None})

    assert code(await ask("hover", "a.fake")) == text


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        pytest.param("goToDefinition", "No definition was found for `second` at a.fake:1:9.", id="definition"),
        pytest.param("findReferences", "No reference was found for `second` at a.fake:1:9.", id="references"),
        pytest.param(
            "goToImplementation", "No implementation was found for `second` at a.fake:1:9.", id="implementation"
        ),
        pytest.param("documentSymbol", "a.fake has no symbols.", id="symbols-of-a-file"),
        pytest.param("workspaceSymbol", "No symbol was found for `second`.", id="symbols"),
        pytest.param(
            "prepareCallHierarchy", "No call hierarchy item was found for `second` at a.fake:1:9.", id="hierarchy"
        ),
        pytest.param("incomingCalls", "No caller was found for `second` at a.fake:1:9.", id="incoming"),
        pytest.param("outgoingCalls", "No callee was found for `second` at a.fake:1:9.", id="outgoing"),
    ],
)
@pytest.mark.parametrize("empty", [None, []])
async def test_where_nothing_is_found_that_is_said_in_plain_words(opened, operation, text, empty):
    methods = ("definition", "references", "implementation", "documentSymbol", "prepareCallHierarchy")
    ask = opened({**{f"textDocument/{method}": empty for method in methods}, "workspace/symbol": empty})

    assert code(await ask(operation, "a.fake", 1, 9)) == text


async def test_places_are_sorted_bounded_and_told_once(opened, folder):
    (folder / "b.fake").write_text("".join(f"use{number}\n" for number in range(1_000)))
    many = [at(folder / "b.fake", number) for number in reversed(range(1_000))]
    ask = opened(
        {
            "textDocument/references": [*many, *many, at(folder / "a.fake", 0, 8)],
            "textDocument/definition": at(folder / "b.fake", 500),
        }
    )

    found = await ask("findReferences", "a.fake", 1, 9)

    assert rows(found)[:3] == [("b.fake", "use500"), ("a.fake", "first = second"), ("b.fake", "use0")]
    assert (len(found.places), found.more) == (100, 901)
    said = code(found).splitlines()
    assert said[0] == "Found 1,001 references to `second`:"
    assert said[1] == "b.fake:501:1 (definition): use500"
    assert said[-1] == "(901 more are not shown.)"


async def test_code_is_shown_of_the_workspace_only(opened, folder, tmp_path):
    outside = tmp_path / "library.fake"
    outside.write_text("TOP SECRET\n")
    (folder / "link.fake").symlink_to(outside)
    (folder / "with space ü.fake").write_text("here\n")
    ask = opened(
        {
            "textDocument/definition": [
                at(outside, 0),
                at(folder / "link.fake", 0, 2),
                at(folder / "with space ü.fake", 0),
                at("jdt://contents/rt.jar/String.class?=x", 7),
                at("untitled:Untitled-1", 0),
                at("file://elsewhere/share/x.fake", 3),
                at("file:///%00", 3),
            ]
        }
    )

    found = await ask("goToDefinition", "a.fake")

    assert code(found).splitlines() == [
        "Found 6 definitions of `first`:",
        "with space ü.fake:1:1: here",
        f"{os.path.realpath(outside)}:1 (outside the workspace)",
        "file:///%00:4",
        "file://elsewhere/share/x.fake:4",
        "jdt://contents/rt.jar/String.class?=x:8",
        "untitled:Untitled-1:1",
    ]


async def test_files_that_may_not_be_read_are_neither_shown_nor_named(opened, folder, tmp_path):
    for name in (".env", "denied.fake", "credentials.fake"):
        (folder / name).write_text("first = 'TOP SECRET'\n")
    (tmp_path / "id_rsa").write_text("TOP SECRET\n")
    secret = [at(folder / name, 0) for name in (".env", "denied.fake", "credentials.fake")]
    ask = opened(
        {
            "textDocument/references": [*secret, at(tmp_path / "id_rsa", 0), at(folder / "a.fake", 0)],
            "textDocument/definition": secret,
            "textDocument/hover": {"contents": "first: 'TOP SECRET'"},
            "workspace/symbol": [
                {"name": "TOP SECRET", "kind": 13, "location": at(folder / "denied.fake", 0)},
                {"name": "first", "kind": 13, "location": at(folder / "a.fake", 0)},
            ],
        },
        denied=("denied.fake",),
    )
    note = "Places in files that may not be read were left out."

    references = await ask("findReferences", "a.fake")
    assert rows(references) == [("a.fake", "first = second")]
    assert ask.notes == [note]
    assert rows(await ask("goToDefinition", "a.fake")) == []
    assert ask.notes == [note]
    assert rows(await ask("workspaceSymbol", "a.fake", query="first")) == [("a.fake", "first = second")]
    assert ask.notes == [note]
    with pytest.raises(ToolFailure) as failure:
        await ask("hover", "a.fake")
    assert failure.value.code == "denied-by-rule"
    assert "SECRET" not in failure.value.message


async def test_nothing_is_asked_about_the_calls_in_a_file_that_may_not_be_read(opened, folder):
    (folder / "denied.fake").write_text("hidden()\n")
    call = {"to": item(folder / "a.fake", "third", 2), "fromRanges": [at(folder / "a.fake", 0)["range"]]}
    ask = opened(
        {
            "textDocument/prepareCallHierarchy": [item(folder / "denied.fake", "hidden", 0)],
            "callHierarchy/outgoingCalls": [call],
        },
        denied=("denied.fake",),
    )

    found = await ask("outgoingCalls", "a.fake")

    assert found.places == ()
    assert ask.notes == ["Places in files that may not be read were left out."]


async def test_callers_in_a_file_that_may_not_be_read_are_left_out_with_their_calls(opened, folder):
    (folder / "denied.fake").write_text("hidden()\n")
    span = at(folder / "a.fake", 0)["range"]
    ask = opened(
        {
            "textDocument/prepareCallHierarchy": [item(folder / "a.fake", "first", 0)],
            "callHierarchy/incomingCalls": [
                {"from": item(folder / "denied.fake", "hidden", 0), "fromRanges": [span]},
                {"from": item(folder / "a.fake", "third", 2), "fromRanges": [span]},
            ],
        },
        denied=("denied.fake",),
    )

    found = await ask("incomingCalls", "a.fake")

    assert code(found).splitlines() == [
        "a.fake:1:1: function first: first = second",
        "",
        "Found 1 caller of `first`:",
        "a.fake:3:3: function third: third(4)",
        "    called at a.fake:1:1: first = second",
    ]


async def test_the_calls_of_one_caller_are_bounded_too(opened, folder):
    (folder / "b.fake").write_text("call()\n" * 500)
    spans = [at(folder / "b.fake", line)["range"] for line in range(500)]
    ask = opened(
        {
            "textDocument/prepareCallHierarchy": [item(folder / "a.fake", "first", 0)] * 2,
            "callHierarchy/incomingCalls": [{"from": item(folder / "b.fake", "call", 0), "fromRanges": spans}],
        }
    )

    found = await ask("incomingCalls", "a.fake")

    assert (len(found.places[0].sites), found.more, found.more_sites) == (99, 0, 401)
    assert code(found).endswith("(401 more calls are not shown.)")


@pytest.mark.parametrize("operation", ["goToImplementation", "incomingCalls", "workspaceSymbol"])
@pytest.mark.parametrize("how", ["says-so", "knows-no-such-method"])
async def test_what_a_server_lacks_is_answered_by_a_text_search(opened, folder, operation, how):
    (folder / "b.fake").write_text("seconds\nuse(second)\n")
    (folder / ".env").write_text("second=TOP SECRET\n")
    (folder / "denied.fake").write_text("second\n")
    lacks = ("implementationProvider", "callHierarchyProvider", "workspaceSymbolProvider")
    ask = opened(lacks=lacks if how == "says-so" else (), denied=("denied.fake",))

    found = await ask(operation, "a.fake", 1, 9)

    assert isinstance(found, InText)
    assert "fake" in found.why
    assert code(found).splitlines() == [
        found.why,
        "A text search for `second` finds these lines, whatever they mean by it:",
        "a.fake:1:first = second",
        "b.fake:2:use(second)",
    ]


async def test_a_text_search_is_bounded_and_says_when_it_finds_nothing(opened, folder):
    (folder / "b.fake").write_text("second\n" * 100)
    ask = opened(lacks=("implementationProvider", "workspaceSymbolProvider"))

    many = await ask("goToImplementation", "a.fake", 1, 9)
    none = await ask("workspaceSymbol", "a.fake", query="no.(such) thing")

    assert len(many.hits.lines) == 30
    assert many.hits.total == 101
    assert code(none).endswith("A text search for `no.(such) thing` finds nothing.")


async def test_the_symbols_of_a_file_are_not_searched_for_in_the_text(opened):
    with pytest.raises(ToolFailure) as failure:
        await opened(lacks=("documentSymbolProvider",))("documentSymbol", "a.fake")

    assert failure.value.code == "unsupported"
    assert "text search" in failure.value.message


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("a.go", "gopls", id="a-language-that-is-known"),
        pytest.param("a.unheard", "a.unheard", id="a-language-that-is-not"),
    ],
)
async def test_without_a_server_the_text_is_searched_and_the_server_named(folder, tmp_path, monkeypatch, name, says):
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"]))
    (folder / name).write_text("first := 1\n")
    ask = Asking(folder, LspSettings(), state=tmp_path / "state")

    found = await ask("findReferences", name)
    with pytest.raises(ToolFailure) as failure:
        await ask("documentSymbol", name)
    known = ask.servers.find_entries(str(folder / name))
    await ask.close()

    assert isinstance(found, InText)
    assert says in found.why
    assert all(row.install in found.why for row in known[:1])
    assert [hit.path for hit in found.hits.lines] == ["a.fake", name]
    assert failure.value.code == "no-language-server"


async def test_characters_are_counted_in_the_units_of_the_server_and_told_in_code_points(opened, folder):
    (folder / "u.fake").write_text("'🎈e\u0301' + name\n")
    ask = opened({"textDocument/definition": [at(folder / "u.fake", 0, 9)]})  # in UTF-16

    found = await ask("goToDefinition", "u.fake", 1, 9)

    assert [(place.line, place.character) for place in found.places] == [(1, 9)]
    assert found.asked.name == "name"
    assert ask.notes == []


async def test_a_carriage_return_alone_ends_a_line_to_the_server_and_not_to_people(opened, folder):
    (folder / "odd.fake").write_bytes(b"one\rtwo\nthree\n")
    ask = opened({"textDocument/definition": [at(folder / "odd.fake", 2, 0), at(folder / "odd.fake", 1, 0)]})

    found = await ask("goToDefinition", "a.fake")

    assert [(place.line, place.character, place.text) for place in found.places] == [
        (1, 5, "one\rtwo"),
        (2, 1, "three"),
    ]


async def test_a_place_behind_the_end_of_its_file_is_named_without_code(opened, folder):
    ask = opened({"textDocument/definition": [at(folder / "a.fake", 99, 5), at(folder / "gone.fake", 3)]})

    assert code(await ask("goToDefinition", "a.fake")).splitlines()[1:] == ["a.fake:100", "gone.fake:4"]


async def test_an_answer_that_is_none_is_a_failure(opened):
    with pytest.raises(ToolFailure) as failure:
        await opened({"textDocument/definition": "what?"})("goToDefinition", "a.fake")

    assert failure.value.code == "server-failed"


async def test_a_symbol_is_told_where_its_name_stands(opened, folder):
    (folder / "b.fake").write_text("@decorated\n@again\ndef third(): pass\n")
    symbol = {"name": "third", "kind": 12, "location": at(folder / "b.fake", 0), "containerName": "box"}

    found = await opened({"workspace/symbol": [symbol]})("workspaceSymbol", "a.fake", query="third")

    assert code(found).splitlines()[1] == "b.fake:3:5: function third (in box): def third(): pass"


async def test_kept_lines_are_read_again_when_the_file_changes_and_forgotten_when_it_is_denied(opened, folder):
    ask = opened({"textDocument/definition": at(folder / "b.fake", 0)})
    guard = ask.services[Guard]
    seen = []
    for text in ("one\n", "two\n", "six\n"):
        (folder / "b.fake").write_text(text)
        seen += [rows(await ask("goToDefinition", "a.fake")) for _ in (1, 2)]
    guard.denied = lambda path, mode: path.endswith("b.fake")

    assert seen == [[("b.fake", text)] for text in ("one", "one", "two", "two", "six", "six")]
    assert rows(await ask("goToDefinition", "a.fake")) == []


async def test_what_is_kept_of_files_is_bounded(folder, tmp_path):
    ask = Asking(folder, LspSettings(), state=tmp_path / "state")
    sources = Sources()
    for number in range(80):
        (folder / f"{number}.fake").write_text("x" * 100_000)
        await sources.get(str(folder / f"{number}.fake"), ask.context({}))
    await ask.close()

    assert len(sources._kept) <= 64
    assert sources._chars == sum(len(kept.text) for _, kept in sources._kept.values()) <= 4 << 20


async def test_where_the_server_does_not_start_the_text_is_searched(folder, tmp_path):
    """As with a stand-in of rustup's whose component was never installed."""
    broken = LanguageServer(
        command=sys.executable, args=("-c", "raise SystemExit('Unknown binary')"), endings=(".fake",)
    )
    ask = Asking(folder, LspSettings(servers={"fake": broken}), state=tmp_path / "state")
    try:
        found = await ask("goToDefinition", "a.fake", 1, 1)
        with pytest.raises(ToolFailure) as failure:
            await ask("documentSymbol", "a.fake")
    finally:
        await ask.close()

    assert isinstance(found, InText)
    assert "Unknown binary" in found.why
    assert "How to get one that can" in found.why
    assert [line.text for line in found.hits.lines] == ["first = second"]
    assert failure.value.code == "no-language-server"


async def test_a_name_with_a_line_end_is_no_line_of_the_answer(opened, folder):
    ask = opened({"textDocument/definition": [at(f"file://{folder}/x%0AFound%0D1", 0), at("odd:a\nFound 2", 0)]})

    said = code(await ask("goToDefinition", "a.fake", 1, 1))

    assert len(said.splitlines()) == 3


async def test_what_only_the_server_can_open_is_named_as_its_own_and_once_for_all_overloads(opened, folder, tmp_path):
    own = tmp_path / "private" / "builtins.fake"
    calls = [
        {"to": item(own, name, line), "fromRanges": [at(folder, site)["range"]]}
        for name, line, site in (("sum", 7, 0), ("sum", 4, 2), ("len", 9, 0))
    ]
    ask = opened(
        {
            "textDocument/prepareCallHierarchy": [item(folder / "a.fake", "first", 0)],
            "callHierarchy/outgoingCalls": calls,
            "textDocument/definition": [at(own, 4), at(own, 7)],
        }
    )

    assert code(await ask("outgoingCalls", "a.fake")).splitlines() == [
        "a.fake:1:1: function first: first = second",
        "",
        "Found 2 callees of `first`:",
        "builtins.fake:5: function sum (fake's own copy)",
        "    called at a.fake:1:1: first = second",
        "    called at a.fake:3:1: third(4)",
        "builtins.fake:10: function len (fake's own copy)",
        "    called at a.fake:1:1: first = second",
    ]
    assert code(await ask("goToDefinition", "a.fake")).splitlines() == [
        "Found 1 definition of `first`:",
        "builtins.fake:5 (fake's own copy)",
    ]


async def test_who_calls_nobody_is_said_to_and_where_it_is_defined(opened, folder):
    ask = opened(
        {
            "textDocument/prepareCallHierarchy": [item(folder / "a.fake", "first", 0)],
            "callHierarchy/outgoingCalls": [],
        }
    )

    assert code(await ask("outgoingCalls", "a.fake")) == (
        "No callee was found for `first` at a.fake:1:1.\nIt is defined at a.fake:1:1: function first: first = second"
    )


async def test_where_the_server_ends_again_and_again_the_text_is_searched(folder, tmp_path):
    ask = Asking(folder, LspSettings(servers={"fake": misbehaving(crash_on=DEFINITION)}), state=tmp_path / "state")
    try:
        for _ in range(2):
            with pytest.raises(ToolFailure, match="ended with exit code 3"):
                await ask("goToDefinition", "a.fake", 1, 1)
        found = await ask("goToDefinition", "a.fake", 1, 1)
    finally:
        await ask.close()

    assert isinstance(found, InText)
    assert "was started 4 times within 5 minutes and did not stay: it is left alone for a while." in found.why
    assert [line.text for line in found.hits.lines] == ["first = second"]


async def test_where_one_ends_again_and_again_the_next_is_asked_and_whom_the_user_named_is_said(folder, tmp_path):
    (folder / "a.fake").write_text("def first(\nfirst()\n")
    servers = {"bad": misbehaving(crash_on=DEFINITION), "good": fake()}
    ask = Asking(folder, LspSettings(servers=servers), state=tmp_path / "state")
    try:
        for _ in range(2):
            with pytest.raises(ToolFailure, match="The language server bad ended with exit code 3"):
                await ask("goToDefinition", "a.fake", 2, 1)
        found = await ask("goToDefinition", "a.fake", 2, 1)
        (note,) = ask.notes
        await ask("goToDefinition", "a.fake", 2, 1)
        assert ask.notes == []
    finally:
        await ask.close()

    assert (found.asked.server, rows(found)) == ("good", [("a.fake", "def first(")])
    assert note.startswith("The language server bad was started 4 times within 5 minutes")
    assert note.endswith("\ngood answers in its place.")
