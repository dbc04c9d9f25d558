"""Claude Code's settings: the shape of the file, and each kind of rule with its twin that denies."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import STRICTNESS, RuleSet, claude
from ferrule.permissions.rules.claude import GROUPS
from ferrule.tools import facts_of
from tests.rows import each_kept_row, each_row

from .written import CWD, HOME, ROOT, canonical, command, fetch, files, rule, subject, tools

SOURCE = ".claude/settings.json"


def read(permissions: object = None, *, text: str | None = None) -> RuleSet:
    text = json.dumps({"permissions": permissions}) if text is None else text
    return claude.read(
        text, source=SOURCE, layer="project", root=ROOT, home=HOME, cwd=CWD, kind="project", canonical=canonical
    )


@each_kept_row
@each_row("action", ["allow", "ask", "deny"])
def test_a_rule_about_commands_covers_this(action, text, line, expected):
    assert rule(action, text).matches(command(line)) is expected


def test_any_form_of_a_command_will_do():
    assert rule("allow", "Bash(git status)").matches(command('git "status"', "git status"))
    assert not rule("allow", "Bash(git status)").matches(command())


def test_a_rule_without_a_star_is_exact():
    found = {text: rule("allow", text).exact for text in ("Bash(ls)", "Bash(ls *)", "Bash(ls:*)", "Bash", "Bash(*)")}

    assert found == {"Bash(ls)": True, "Bash(ls *)": False, "Bash(ls:*)": False, "Bash": False, "Bash(*)": False}


@pytest.mark.parametrize(
    "line", ["/bin/rm -rf x", "RM -rf x", "rm\t-rf x", " rm -rf x", "./rm -rf x", "/usr/bin/RM -rf x"]
)
def test_to_deny_a_program_denies_it_however_it_is_written(line):
    assert rule("deny", "Bash(rm *)").matches(command(line))
    assert not rule("allow", "Bash(rm *)").matches(command(line))


def test_only_the_programs_case_is_free():
    assert not rule("deny", "Bash(git branch -D *)").matches(command("git branch -d x"))
    assert rule("deny", "Bash(git branch -D *)").matches(command("GIT branch -D x"))


@each_kept_row
def test_a_rule_about_names_covers_this(text, name, allowed, denied):
    if allowed is None:
        with pytest.raises(ConfigError, match="mcp__server__"):
            rule("allow", text)
    else:
        assert rule("allow", text).matches(subject(name)) is allowed
    assert rule("deny", text).matches(subject(name)) is denied
    assert rule("ask", text).matches(subject(name)) is denied


def test_the_names_of_the_syntax_stand_for_the_groups_that_the_tools_say_themselves():
    assert {name: facts_of(canonical(name) or "").rules for name in GROUPS} == GROUPS


def test_any_familys_name_binds_the_tool_under_all_its_names():
    for tool, names in tools().items():
        for name in names:
            if canonical(name) == tool:
                assert rule("deny", name).matches(subject(tool))


OTHERS = [
    pytest.param("Task(Explore)", subject("delegate", values={"subagent_type": "Explore"}), True, True, id="agent"),
    pytest.param("Agent(Explore)", subject("delegate", values={"agent_type": "Explore"}), True, True, id="agent-new"),
    pytest.param("Task(Explore)", subject("delegate", values={"subagent_type": "Explorer"}), False, False, id="whole"),
    pytest.param("Task(general-purpose)", subject("delegate"), False, True, id="the-usual-agent"),
    pytest.param("Task", subject("delegate", values={"subagent_type": "x"}), True, True, id="any-agent"),
    pytest.param("Task(*)", subject("delegate", values={"subagent_type": "x"}), True, True, id="any-agent-by-star"),
    pytest.param("Skill(pdf)", subject("skill", values={"skill": "pdf"}), True, True, id="skill"),
    pytest.param("Skill(pdf)", subject("skill", values={"name": "pdf"}), True, True, id="skill-of-another-family"),
    pytest.param("Skill(pdf)", subject("skill", values={"skill": "pdf", "args": "x"}), False, True, id="with-words"),
    pytest.param("Skill(pdf *)", subject("skill", values={"skill": "pdf", "args": "x"}), True, True, id="any-words"),
    pytest.param("Skill(pdf *)", subject("skill", values={"skill": "pdf"}), True, True, id="any-words-or-none"),
    pytest.param("Skill(pdf *)", subject("skill", values={"skill": "pdfx"}), False, False, id="whole-name"),
    pytest.param("Skill(/pdf)", subject("skill", values={"skill": "/pdf"}), True, True, id="slash"),
    pytest.param("Skill(a:pdf)", subject("skill", values={"skill": "a:pdf"}), True, True, id="plug-in"),
    pytest.param("WebSearch", subject("web_search"), True, True, id="search"),
]


@each_row(("text", "case", "allowed", "denied"), OTHERS)
def test_a_rule_about_another_tool_covers_this(text, case, allowed, denied):
    assert rule("allow", text).matches(case) is allowed
    assert rule("deny", text).matches(case) is denied


@each_row(
    ("text", "case", "expected"),
    [
        ("Bash(run_in_background:true)", command("x", values={"run_in_background": True}), True),
        ("Bash(run_in_background:true)", command("x", values={"run_in_background": False}), False),
        ("Bash(run_in_background:true)", command("x"), False),
        ("Task(model:opus*)", subject("delegate", values={"model": "opus-4"}), True),
        ("mcp__git__push(branch:main)", subject("mcp__git__push", values={"branch": "main"}), True),
        ("mcp__git__push(branch:main)", subject("mcp__git__pull", values={"branch": "main"}), False),
        *(
            ("mcp__b__go(url:https://evil.example/*)", subject("mcp__b__go", values={"url": url}), True)
            for url in (
                "https://EVIL.example/x",
                "https://evil.example:443/x",
                "https://a@evil.example/x",
                "https://\uff45vil.example/x",
                "https:\\\\evil.example/x",
            )
        ),
        (
            "mcp__b__go(url:https://EVIL.example/*)",
            subject("mcp__b__go", values={"url": "https://evil.example/x"}),
            True,
        ),
        (
            "mcp__b__go(url:https://evil.example/*)",
            subject("mcp__b__go", values={"url": "https://ok.example/x"}),
            False,
        ),
        ("mcp__x__y(tags:b)", subject("mcp__x__y", values={"tags": ["a", "b"]}), True),
        ("WebSearch(query:*secret*)", subject("web_search", values={"query": "my secret"}), True),
        ("Read(limit:5)", subject("read", values={"limit": 5}), True),
        ("Read(limit:5)", subject("grep", values={"limit": 5}), False),
        ("mcp__x__y(depth:null)", subject("mcp__x__y", values={"depth": None}), True),
    ],
)
def test_an_argument_can_be_denied_by_its_value(text, case, expected):
    assert rule("deny", text).matches(case) is expected
    assert rule("ask", text).matches(case) is expected


@each_row(
    "text",
    [
        pytest.param("mcp__git__push(branch:main)", id="value"),
        pytest.param("WebSearch(query:x)", id="value-of-a-search"),
        pytest.param("WebFetch(https://example.com)", id="url"),
        pytest.param("Task(rev*)", id="agents-by-pattern"),
        pytest.param("Bash()", id="empty"),
        pytest.param("Bash(:*)", id="colon-star-after-nothing"),
        pytest.param("Skill(:*)", id="colon-star-for-all-skills"),
        pytest.param("Edit( )", id="blank"),
    ],
)
def test_what_only_denies_cannot_allow(text):
    with pytest.raises(ConfigError):
        rule("allow", text)


@each_row("text", ["", "  ", "(x)", "Bash(ls", "Bash)ls(", "Bash(ls) x", "a b", "WebSearch(x)", "Foo(x)"])
def test_a_rule_that_cannot_be_read_is_an_error_unless_it_allows(text):
    for action in ("deny", "ask"):
        with pytest.raises(ConfigError, match=rf"^\.claude/settings\.json: permissions\.{action}\[1\]: "):
            read({action: ["Bash", text]})
    found = read({"allow": ["Bash", text]})
    assert [one.text for one in found.rules] == ["Bash"]
    assert len(found.warnings) == 1


def test_the_rules_of_a_file_are_read_with_the_strictest_first():
    found = read({"allow": ["Bash(git *)"], "ask": ["Bash(git push *)"], "deny": ["Bash(git push --force *)"]})

    assert [(one.action, one.text) for one in found.rules] == [
        ("deny", "Bash(git push --force *)"),
        ("ask", "Bash(git push *)"),
        ("allow", "Bash(git *)"),
    ]
    lines = ["git status", "git push origin", "git push --force x", "ls"]
    verdicts = [found.verdict(command(line)) for line in lines]
    assert [one and one.action for one in verdicts] == ["allow", "ask", "deny", None]
    assert (found.ordered, found.source, found.layer, found.warnings) == (False, SOURCE, "project", ())


def test_a_path_rule_for_another_name_is_warned_about_in_these_words():
    found = read({"deny": ["Write(docs/**)"]})

    assert "\n".join(found.warnings) == (
        "Permission deny rule (.claude/settings.json): Write(docs/**) is not matched by file permission checks — "
        "only Edit(path) rules are. Use Edit(docs/**) instead (Edit rules cover all file-editing tools)."
    )


@pytest.mark.parametrize("name", ["Write", "MultiEdit", "NotebookEdit"])
def test_a_path_rule_for_another_name_allows_nothing_and_denies_all_the_same(name):
    case = files("edit", "write", "/proj/app/docs/x")
    allowed, denied = read({"allow": [f"{name}(docs/**)"]}), read({"deny": [f"{name}(docs/**)"]})

    assert (allowed.rules, len(allowed.warnings), len(denied.warnings)) == ((), 1, 1)
    assert denied.rules[0].matches(case)


def test_a_path_rule_for_glob_is_one_for_reading():
    found = read({"ask": ["Glob(docs/**)"]})

    assert "Use Read(docs/**) instead" in found.warnings[0]
    assert found.rules[0].matches(files("read", "read", "/proj/app/docs/x"))


def test_a_star_for_all_domains_is_warned_about():
    assert "Use WebFetch." in read({"allow": ["WebFetch(domain:*)"]}).warnings[0]


def test_folders_mode_and_lock_are_read():
    found = read(
        {
            "additionalDirectories": ["../docs/", "~/notes", "/srv/x", "~"],
            "defaultMode": "acceptEdits",
            "disableBypassPermissionsMode": "disable",
        }
    )

    assert found.folders == ("/docs", "/home/ann/notes", "/srv/x", "/home/ann")
    assert (found.mode, found.forbids_bypass) == ("acceptEdits", True)


@pytest.mark.parametrize("text", ["{}", '{"permissions": null}', '{"permissions": {}}', '\ufeff{"model": "x"}'])
def test_a_file_without_rules_has_none(text):
    assert read(text=text) == RuleSet(rules=(), ordered=False, source=SOURCE, layer="project")


@each_row(
    ("text", "why"),
    [
        pytest.param("", "line 1, column 1", id="empty"),
        pytest.param('{"permissions": {"deny": ["Bash"],}}', "line 1, column", id="comma"),
        pytest.param("// x\n{}", "line 1, column 1", id="comment"),
        pytest.param("[]", "have to be an object", id="list"),
        pytest.param('{"permissions": []}', "permissions has to be an object", id="permissions-list"),
        pytest.param('{"permissions": {"deny": "Bash"}}', "permissions.deny has to be a list", id="text"),
        pytest.param('{"permissions": {"deny": [1]}}', r"permissions.deny\[0\]: a rule is a text", id="number"),
        pytest.param('{"permissions": {"deny": ["Bash"], "deny": []}}', "deny is written twice", id="twice"),
        pytest.param('{"permissions": {"denny": ["Bash"]}}', "permissions.denny is not known; deny is", id="typo"),
        pytest.param('{"permissions": {"Deny": ["Bash"]}}', "permissions.Deny is not known; deny is", id="case"),
        pytest.param('{"permissions": {"defaultMode": "acceptEdit"}}', "Did you mean acceptEdits", id="mode"),
        pytest.param('{"permissions": {"defaultMode": 1}}', "has to be a text", id="mode-number"),
        pytest.param('{"permissions": {"disableBypassPermissionsMode": true}}', 'can only be "disable"', id="lock"),
        pytest.param('{"permissions": {"additionalDirectories": [1]}}', "a folder is a text", id="folder"),
        pytest.param('{"x": ' + "9" * 5000 + "}", "digits", id="long-number"),
        pytest.param('{"a\\u001b": 1, "a\\u001b": 2}', r"a\\x1b is written twice", id="what-steers-a-screen"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(text, why):
    with pytest.raises(ConfigError, match=why) as caught:
        read(text=text)

    assert str(caught.value).startswith(SOURCE)


def test_an_unknown_key_and_a_rule_that_is_no_text_are_warned_about():
    found = read({"allow": [1, "Bash(ls)"], "autoMode": {}})

    assert [one.text for one in found.rules] == ["Bash(ls)"]
    assert found.warnings == (
        ".claude/settings.json: permissions.autoMode is not known and was left out.",
        ".claude/settings.json: permissions.allow[0] was left out: a rule is a text.",
    )


@pytest.mark.parametrize(
    ("text", "tool", "expected"),
    [
        ("Bash", "shell", True),
        ("Bash(*)", "shell", True),
        ("Bash(rm *)", "shell", False),
        ("mcp__x", "mcp__x__y", True),
    ],
)
def test_a_bare_denial_hides_the_tool(text, tool, expected):
    assert claude.hides(rule("deny", text), subject(tool)) is expected
    assert not claude.hides(rule("ask", text), subject(tool))


TEXTS = st.sampled_from(
    ["Bash", "Bash(ls *)", "Bash(rm *)", "Read(.env)", "Edit(src/**)", "Edit", "WebFetch(domain:a.b)", "mcp__git"]
)
CASES = st.sampled_from(
    [
        command("ls -l"),
        command("rm x"),
        files("read", "read", "/proj/app/.env"),
        files("edit", "write", "/proj/app/src/x"),
        fetch("a.b"),
        subject("mcp__git__push"),
    ]
)
LISTS = st.fixed_dictionaries({action: st.lists(TEXTS, max_size=4) for action in ("allow", "ask", "deny")})


@given(LISTS, LISTS, CASES)
def test_more_denials_and_questions_never_weaken_a_verdict(lists, more, case):
    fewer = read(lists).verdict(case)
    tighter = read(lists | {action: lists[action] + more[action] for action in ("ask", "deny")}).verdict(case)

    assert fewer is None or (tighter is not None and STRICTNESS[tighter.action] >= STRICTNESS[fewer.action])


@given(LISTS, CASES)
def test_what_is_denied_stays_denied_whatever_is_allowed(lists, case):
    only = read({"deny": lists["deny"]}).verdict(case)
    found = read(lists).verdict(case)

    assert only is None or (found is not None and found.action == "deny")


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_no_text_breaks_the_reader(text):
    found = read({"allow": [text]})

    assert len(found.rules) + len(found.warnings) >= 1
