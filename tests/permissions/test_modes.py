"""What a mode includes: the seed's table, with any of a tool's names."""

from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.dialects import load_dialect
from ferrule.permissions import ModeConfig, includes
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.tools import BUILTIN, load
from tests.rows import each_row

AMP = load_dialect("amp")
CANONICAL = Registry([Later(name, partial(load, name)) for name in BUILTIN], AMP.faces, AMP.aliases).canonical

types = st.none() | st.lists(st.sampled_from(["all", "scope", "finder"]), max_size=3).map(tuple)
modes = st.builds(
    ModeConfig,
    include_tools=st.none() | st.lists(st.sampled_from(["Read", "Bash", "glob"])).map(tuple),
    allow_mcp=st.booleans(),
    allow_toolbox=st.booleans(),
    subagent_type=st.none() | st.sampled_from(["scope", "finder"]),
)


@pytest.mark.contract("mode.mcp-off", "mode.mcp-on")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(ModeConfig(), False, id="off-by-default"),
        pytest.param(ModeConfig(allow_mcp=True), True, id="on"),
        pytest.param(ModeConfig(allow_toolbox=True), False, id="a-toolbox-is-something-else"),
        pytest.param(ModeConfig(include_tools=("mcp__github__search",)), False, id="the-list-is-for-native-tools"),
        pytest.param(ModeConfig(include_tools=(), allow_mcp=True), True, id="the-list-does-not-take-away"),
    ],
)
def test_tools_of_servers_are_included_by_their_switch(mode, expected):
    assert includes(mode, "mcp__github__search", canonical=CANONICAL) is expected


@pytest.mark.contract("mode.toolbox-off", "mode.toolbox-on", "mode.subagent-all", "mode.subagent-same")
@pytest.mark.contract("mode.subagent-other", "mode.subagent-unset")
@each_row(
    ("mode", "subagent_types", "expected"),
    [
        pytest.param(ModeConfig(), (), False, id="off-by-default"),
        pytest.param(ModeConfig(), ("all",), False, id="off-beats-all"),
        pytest.param(ModeConfig(allow_mcp=True), (), False, id="a-server-is-something-else"),
        pytest.param(ModeConfig(allow_toolbox=True), (), True, id="on"),
        pytest.param(ModeConfig(allow_toolbox=True), ("scope",), True, id="no-subagent"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), None, True, id="no-restriction"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), (), False, id="for-none-of-them"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), ("all",), True, id="all"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), ("scope",), True, id="same"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), ("finder", "scope"), True, id="among"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), ("finder",), False, id="other"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), ("scope2",), False, id="longer-name"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="all"), ("scope",), False, id="type-named-all"),
    ],
)
def test_tools_of_toolboxes_are_included_by_their_switch_and_their_subagents(mode, subagent_types, expected):
    assert includes(mode, "tb__custom", subagent_types=subagent_types, canonical=CANONICAL) is expected


@pytest.mark.contract("mode.included", "mode.not-included")
@each_row(
    ("listed", "name", "expected"),
    [
        pytest.param(None, "Bash", True, id="no-list-means-all"),
        pytest.param((), "Read", False, id="empty-list-means-none"),
        pytest.param(("Read",), "Read", True, id="listed"),
        pytest.param(("Read",), "Bash", False, id="not-listed"),
        pytest.param(("read_file",), "Read", True, id="listed-by-an-alias"),
        pytest.param(("read",), "Read", True, id="listed-by-the-canonical-name"),
        pytest.param(("Read",), "read_file", True, id="called-by-an-alias"),
        pytest.param(("Bash",), "run_terminal_command", True, id="called-by-another-face"),
        pytest.param(("run_terminal_command",), "Bash", True, id="listed-by-another-face"),
        pytest.param(("Read", "glob"), "run_terminal_command", False, id="no-way-around-by-another-face"),
        pytest.param(("shell",), "Bash", True, id="canonical-shell"),
        pytest.param(("unknown",), "Read", False, id="unknown-name-in-the-list"),
        pytest.param(("my_tool",), "my_tool", True, id="a-tool-of-the-user-s"),
    ],
)
def test_native_tools_are_included_by_the_list_under_any_name(listed, name, expected):
    assert includes(ModeConfig(include_tools=listed), name, canonical=CANONICAL) is expected


@given(modes, st.sampled_from(["Read", "Bash", "mcp__a__b", "tb__c", "mcp_", "tb_x"]), types)
def test_the_decision_is_the_seed_s(mode: ModeConfig, name: str, subagent_types: tuple[str, ...] | None):
    def seed() -> bool:
        if name.startswith("mcp__"):
            return mode.allow_mcp
        if name.startswith("tb__"):
            if mode.allow_toolbox and mode.subagent_type and subagent_types is not None:
                return "all" in subagent_types or mode.subagent_type in subagent_types
            return mode.allow_toolbox
        return mode.include_tools is None or name in mode.include_tools

    assert includes(mode, name, subagent_types=subagent_types, canonical=CANONICAL) is seed()


def test_a_mode_is_written_in_the_seed_s_words():
    text = b'{"includeTools": ["Read"], "allowMcp": true, "allowToolbox": true, "subagentType": "scope"}'

    assert msgspec.json.decode(text, type=ModeConfig) == ModeConfig(
        include_tools=("Read",), allow_mcp=True, allow_toolbox=True, subagent_type="scope"
    )
