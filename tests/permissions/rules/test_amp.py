"""Amp's rules: every sentence of what is known about them, hostile files, and paths that are not what they seem."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import PathAccess, RuleSet, Subject, amp
from tests.rows import each_kept_row, each_row

BASH = frozenset({"shell", "Bash", "run_shell_command", "exec_command"})
COMMAND = frozenset({"cmd", "command"})


def read(rules, layer="user", home="/home/me") -> RuleSet:
    text = rules if isinstance(rules, str) else json.dumps(rules)
    return amp.read(text, source="rules", layer=layer, home=home)


def bash(*forms: str, context="thread", **values) -> Subject:
    values = dict.fromkeys(COMMAND, forms[0]) | values
    return Subject("shell", BASH, values, forms, COMMAND, context=context)


def call(tool: str, *names: str, **values) -> Subject:
    return Subject(tool, frozenset({tool, *names}), values)


def reading(written: str, *, spelled: str | None = None, real: str | None = None, mode="read") -> Subject:
    """A call with a path in it; the workspace is /ws."""
    absolute = spelled or (written if written.startswith("/") else f"/ws/{written}")
    touched = PathAccess(mode, real or absolute, absolute)
    values = {"path": written, "file_path": written}
    return Subject("read", frozenset({"read", "Read"}), values, paths=(touched,), workspace="/ws")


def verdict(rules: RuleSet, subject: Subject) -> str:
    """The action of the rule that decides; empty where none does."""
    rule = rules.verdict(subject)
    return "" if rule is None else rule.action


def decides(rules, subject: Subject) -> str | None:
    """What is decided, in Amp's words; None where no rule matches."""
    rule = read(rules).verdict(subject)
    return None if rule is None else {"deny": "reject"}.get(rule.action, rule.action)


def holds(matches, subject: Subject, action="ask") -> bool:
    return decides([{"tool": "*", "matches": matches, "action": action}], subject) is not None


@each_row(
    ("rules", "subject", "expected"),
    [
        pytest.param("allow Bash --cmd 'git diff*'", bash("git diff --stat"), "allow", id="example-git-diff"),
        pytest.param("allow Bash --cmd 'git diff*'", bash("git push"), None, id="example-git-diff-no"),
        pytest.param(
            "allow Bash --cmd 'git diff*' --cmd 'git commit*'", bash("git commit -m x"), "allow", id="example-or"
        ),
        pytest.param("delegate --to amp-git-permissions Bash --cmd '*'", bash("ls"), "delegate", id="example-delegate"),
        pytest.param("reject mermaid", call("mermaid"), "reject", id="example-mermaid"),
        pytest.param("reject edit_file --path '.*'", call("edit_file", path=".env"), "reject", id="example-hidden"),
        pytest.param("reject edit_file --path '.*'", call("edit_file", path="a.env"), None, id="example-hidden-no"),
        pytest.param("ask Grep --path '$HOME/*'", call("Grep", path="/home/me/x"), "ask", id="example-home"),
        pytest.param("ask Grep --path '$HOME/*'", call("Grep", path="/ws/x"), None, id="example-home-no"),
        pytest.param(
            [{"tool": "Bash", "matches": {"cmd": "/^git (status|log|diff)$/"}, "action": "allow"}],
            bash("git status"),
            "allow",
            id="example-expression",
        ),
        pytest.param(
            [{"tool": "Bash", "matches": {"cmd": "/^git (status|log|diff)$/"}, "action": "allow"}],
            bash("git commit"),
            None,
            id="example-expression-no",
        ),
        pytest.param(
            'reject --context subagent Bash --cmd "rm -rf *"\nallow --context thread Bash',
            bash("rm -rf x"),
            "allow",
            id="example-context-thread",
        ),
        pytest.param(
            'allow --context thread Bash\nreject --context subagent Bash --cmd "rm -rf *"',
            bash("rm -rf x", context="subagent"),
            "reject",
            id="example-context-subagent",
        ),
        pytest.param("ask Bash\nallow *", bash("ls", context="subagent"), "ask", id="no-context-is-both"),
        pytest.param("ask Bash --cmd '*git*push*'\nallow Bash", bash("git push"), "ask", id="the-first-match-wins"),
        pytest.param("allow Bash\nreject Bash", bash("ls"), "allow", id="also-over-a-later-reject"),
        pytest.param("allow mcp__*", call("mcp__github__search"), "allow", id="tool-by-glob"),
        pytest.param("allow mcp__*", call("tb__x"), None, id="tool-by-glob-no"),
        pytest.param("reject '/^mcp__(a|b)__/'", call("mcp__b__x"), "reject", id="tool-by-expression"),
        pytest.param("reject *", call("anything"), "reject", id="every-tool"),
        pytest.param("reject run_shell_command", bash("ls"), "reject", id="a-name-of-another-family"),
        pytest.param("reject run_*", bash("ls"), "reject", id="a-glob-of-another-familys-name"),
        pytest.param("reject bash", bash("ls"), None, id="names-have-their-case"),
        pytest.param("allow '/^(?!Bash)/'", bash("ls"), None, id="not-bash-means-no-name-of-it"),
        pytest.param("allow '/^(?!Bash)/'", call("read", "Read"), "allow", id="not-bash-means-others"),
    ],
)
def test_what_is_documented_holds(rules, subject, expected):
    assert decides(rules, subject) == expected


@each_row(
    ("matches", "values", "expected"),
    [
        pytest.param({"a": "x*", "b": 1}, {"a": "xy", "b": 1}, True, id="all-keys-hold"),
        pytest.param({"a": "x*", "b": 1}, {"a": "xy", "b": 2}, False, id="one-key-does-not"),
        pytest.param({"a": ["x", "/^y/", 3]}, {"a": "yes"}, True, id="a-list-is-or"),
        pytest.param({"a": ["x", "/^y/", 3]}, {"a": 3}, True, id="a-list-of-kinds"),
        pytest.param({"a": ["x", "/^y/", 3]}, {"a": "z"}, False, id="none-of-a-list"),
        pytest.param({"a": "*"}, {}, False, id="a-missing-argument-does-not-match"),
        pytest.param({"a": None}, {}, False, id="missing-is-not-null"),
        pytest.param({"a": None}, {"a": None}, True, id="null"),
        pytest.param({"a": None}, {"a": 0}, False, id="null-is-not-0"),
        pytest.param({"a": True}, {"a": True}, True, id="true"),
        pytest.param({"a": True}, {"a": 1}, False, id="true-is-not-1"),
        pytest.param({"a": 1}, {"a": True}, False, id="1-is-not-true"),
        pytest.param({"a": 0}, {"a": False}, False, id="0-is-not-false"),
        pytest.param({"a": 1}, {"a": 1.0}, True, id="1-is-1.0"),
        pytest.param({"a": "1"}, {"a": 1}, False, id="texts-match-only-texts"),
        pytest.param({"a": "*"}, {"a": ["x"]}, False, id="texts-do-not-match-lists"),
        pytest.param({"a": "/true/"}, {"a": True}, False, id="expressions-match-only-texts"),
        pytest.param({"a": 1}, {"a": "1"}, False, id="numbers-match-only-numbers"),
        pytest.param({"a": {"b": {"c": "x*"}}}, {"a": {"b": {"c": "xy"}}}, True, id="nested-keys"),
        pytest.param({"a": {"b": {"c": "x*"}}}, {"a": {"b": {}}}, False, id="a-nested-key-is-missing"),
        pytest.param({"a": {"b": 1}}, {"a": "b"}, False, id="no-object-to-look-into"),
        pytest.param({"a.b.c": "x*"}, {"a": {"b": {"c": "xy"}}}, True, id="dotted-keys"),
        pytest.param({"a.b.c": "x*"}, {"a.b.c": "xy"}, True, id="a-key-with-dots"),
        pytest.param({"a": {"b.c": 1}}, {"a": {"b": {"c": 1}}}, True, id="dots-inside"),
        pytest.param({"a.1.b": "x"}, {"a": [{}, {"b": "x"}]}, True, id="numbers-of-array-elements"),
        pytest.param({"a": {"0": "x"}}, {"a": ["x"]}, True, id="a-number-as-a-key"),
        pytest.param({"a.2": "x"}, {"a": ["x"]}, False, id="beyond-the-array"),
        pytest.param({"a.-1": "x"}, {"a": ["x"]}, False, id="not-from-the-end"),
        pytest.param({"a.٠": "x"}, {"a": ["x"]}, False, id="only-plain-digits"),
        pytest.param({"a": "$HOME/x"}, {"a": "/home/me/x"}, True, id="home"),
    ],
)
@each_row("action", ["allow", "reject"])
def test_conditions_hold_as_documented(matches, values, expected, action):
    assert holds(matches, call("t", **values), action) is expected


@pytest.mark.parametrize("key", sorted(COMMAND))
def test_a_condition_on_the_command_is_tried_on_each_of_its_forms(key):
    subject = bash("timeout 5 git diff", "git diff")

    assert holds({key: "git diff*"}, subject, "allow")
    assert holds({key: "timeout *"}, subject, "allow")
    assert not holds({key: "diff*"}, subject, "reject")


def test_an_expression_that_negates_allows_only_when_no_form_of_the_command_is_what_it_excludes():
    rule = {"cmd": "/^find(?!.*-delete)/"}

    assert not holds(rule, bash("find . -'delete'", "find . -delete"), "allow")
    assert holds(rule, bash("find . -'name' x", "find . -name x"), "allow")


def test_a_denied_form_of_the_command_is_enough():
    assert holds({"cmd": "/-delete/"}, bash("find . -'delete'", "find . -delete"), "reject")


@each_row(
    ("pattern", "subject", "denied", "allowed"),
    [
        pytest.param("src/*", reading("src/a"), True, True, id="as-written"),
        pytest.param("src/*", reading("/ws/src/a"), True, True, id="from-the-workspace"),
        pytest.param("/ws/src/*", reading("src/a"), True, True, id="from-the-root"),
        pytest.param("src/*", reading("src/../secret", real="/ws/secret"), True, False, id="climbing-out"),
        pytest.param("src/*", reading("src/link", real="/etc/passwd"), True, False, id="a-link-out"),
        pytest.param("/etc/*", reading("src/link", real="/etc/passwd"), True, False, id="a-link-in"),
        pytest.param(".*", reading("/ws/.env"), True, True, id="hidden-by-its-whole-path"),
        pytest.param("/ws/src/*", reading("/ws/src/../.env", real="/ws/.env"), True, False, id="dots-in-between"),
        pytest.param("/ws/.env", reading("/ws/src/../.env", real="/ws/.env"), True, True, id="dots-resolved"),
        pytest.param(r"/^(?!\/ws\/)/", reading("/ws/a"), False, False, id="not-below-work-is-not-true-of-it"),
        pytest.param(r"/^(?!\/ws\/)/", reading("/ws/l", real="/etc/x"), True, False, id="but-of-a-link-out"),
        pytest.param(r"/^(?!\/ws\/)/", reading("/etc/x"), True, True, id="and-of-what-is-outside"),
        pytest.param("/^(?!src\\/)/", reading("src/a"), False, False, id="not-in-src-is-not-true-of-it"),
        pytest.param(r"/^(?!.*\.env).*$/", reading("a", real="/ws/.env"), True, False, id="a-link-to-a-secret"),
    ],
)
def test_a_path_is_also_where_it_really_leads(pattern, subject, denied, allowed):
    assert holds({"path": pattern}, subject, "reject") is denied
    assert holds({"path": pattern}, subject, "allow") is allowed


@each_kept_row
def test_an_address_is_what_is_connected_to(pattern, url, denied, allowed):
    assert holds({"url": pattern}, call("web_fetch", url=url), "reject") is denied
    assert holds({"url": pattern}, call("web_fetch", url=url), "allow") is allowed


def test_a_path_that_nobody_knows_for_one_does_not_climb_out_of_what_is_allowed():
    assert not holds({"path": "/ws/*"}, call("mcp__fs__read", path="/ws/../etc/passwd"), "allow")
    assert holds({"path": "/etc/*"}, call("mcp__fs__read", path="/ws/../etc/passwd"), "reject")


def test_a_home_folder_behind_a_link_counts_by_both_names(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    rules = read("ask Grep --path '$HOME/*'", home=str(link))

    assert rules.verdict(call("Grep", path=f"{real}/x")) is not None
    assert rules.verdict(call("Grep", path=f"{link}/x")) is not None


@pytest.mark.parametrize("bomb", ["/(a+)+$/", "/^(a|aa)+$/"])
def test_an_expression_that_takes_too_long_fails_closed(bomb):
    subject = bash("a" * 20_000 + "!")

    assert decides([{"tool": "Bash", "matches": {"cmd": bomb}, "action": "allow"}], subject) is None
    for action in ("reject", "ask"):
        assert decides([{"tool": "Bash", "matches": {"cmd": bomb}, "action": action}], subject) == action


@each_row(
    ("text", "count"),
    [
        pytest.param('[{"tool": "a", "action": "ask"}]', 1, id="the-list"),
        pytest.param('{"amp.permissions": [{"tool": "a", "action": "ask"}]}', 1, id="a-settings-file"),
        pytest.param('{"permissions": [{"tool": "a", "action": "ask"}]}', 1, id="an-object"),
        pytest.param('\ufeff// c\n[/* c */{"tool": "a", "action": "ask",},]', 1, id="comments-and-commas"),
        pytest.param('[{"tool": "a//b/*c*/,]", "action": "ask"}]', 1, id="no-comments-inside-of-texts"),
        pytest.param("# c\n\nask a\r\nallow b # c\n", 2, id="text"),
        pytest.param('{"tool": "a", "action": "ask"}\nallow b', 2, id="lines-of-which-one-is-json"),
        pytest.param("", 0, id="nothing"),
        pytest.param("{}", 0, id="an-empty-object"),
    ],
)
def test_rules_come_in_every_documented_form(text, count):
    rules = read(text)

    assert len(rules.rules) == count
    assert rules.ordered
    assert (rules.source, rules.layer) == ("rules", "user")


def test_a_rule_keeps_what_it_says():
    [rule] = read([{"tool": "Bash", "action": "reject", "message": "No.", "context": "subagent"}]).rules
    [delegate] = read([{"tool": "Bash", "action": "delegate", "to": "/usr/bin/x"}]).rules

    assert (rule.action, rule.message, rule.context) == ("deny", "No.", "subagent")
    assert rule.text == "reject --context subagent --message No. Bash"
    assert (delegate.action, delegate.to) == ("delegate", "/usr/bin/x")


@each_row(
    ("line", "exact"),
    [
        ("allow Bash --cmd 'npm test'", True),
        ("allow Bash --command 'npm test' --cwd '*'", True),
        ("allow Bash --cmd 'npm test' --cmd 'npm run x'", True),
        ("allow Bash --cmd 'npm test*'", False),
        ("allow Bash --cmd 'npm test' --cmd 'npm *'", False),
        ("allow Bash --cmd '/^npm test$/'", False),
        ("allow Bash --path x", False),
        ("allow Bash", False),
    ],
)
def test_a_rule_is_exact_when_it_names_command_lines_and_no_patterns(line, exact):
    assert read(line).rules[0].exact is exact


@each_row(
    ("entry", "message"),
    [
        pytest.param("x", "an object", id="no-object"),
        pytest.param({"action": "ask"}, "tool is missing", id="no-tool"),
        pytest.param({"tool": "a"}, "action is missing", id="no-action"),
        pytest.param({"tool": "", "action": "ask"}, "tool must be", id="empty-tool"),
        pytest.param({"tool": 1, "action": "ask"}, "tool must be", id="tool-of-another-kind"),
        pytest.param({"tool": "a", "action": "deny"}, "reject", id="unknown-action"),
        pytest.param({"tool": "a", "action": "delegate"}, "delegate", id="delegate-needs-to"),
        pytest.param({"tool": "a", "action": "ask", "to": "x"}, "delegate", id="to-only-with-delegate"),
        pytest.param({"tool": "a", "action": "delegate", "to": "./x"}, "absolute", id="a-relative-program"),
        pytest.param({"tool": "a", "action": "ask", "message": "x"}, "reject only", id="message-only-with-reject"),
        pytest.param({"tool": "a", "action": "ask", "context": "all"}, "thread or subagent", id="unknown-context"),
        pytest.param({"tool": "a", "action": "ask", "match": {}}, "not a part", id="unknown-key"),
        pytest.param({"tool": "a", "action": "ask", "matches": []}, "an object", id="matches-of-another-kind"),
        pytest.param({"tool": "a", "action": "ask", "matches": None}, "an object", id="matches-null"),
        pytest.param({"tool": "a", "action": "ask", "matches": {"": 1}}, "no name", id="argument-without-a-name"),
        pytest.param({"tool": "a", "action": "ask", "matches": {"x": []}}, "never hold", id="empty-list"),
        pytest.param({"tool": "a", "action": "ask", "matches": {"x": {}}}, "never hold", id="empty-condition"),
        pytest.param({"tool": "a", "action": "ask", "matches": {"x": "/(/"}}, "parenthesis", id="bad-expression"),
        pytest.param({"tool": "/(/", "action": "ask"}, "parenthesis", id="bad-expression-for-tools"),
        pytest.param({"tool": "a", "action": "ask", "matches": {"x": 10**310}}, "too large", id="a-huge-number"),
    ],
)
def test_a_bad_rule_is_refused_with_its_number(entry, message):
    with pytest.raises(ConfigError, match=rf"^rules, rule 2: .*{message}.*\.$"):
        read([{"tool": "a", "action": "ask"}, entry])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 100_000, "deep", id="deep-nesting"),
        pytest.param('[{"tool":"a","action":"ask","matches":{"x":' + "[" * 99 + "]" * 99 + "}}]", "deep", id="deep"),
        pytest.param("[" + " " * (1 << 20) + "]", "longer", id="huge"),
        pytest.param("[" + '{"tool":"a","action":"ask"},' * 10_001 + "]", "more than", id="many"),
        pytest.param("reject '/x/'\n" * 1001, "more than 1000", id="many-expressions"),
        pytest.param('[{"tool": "a", "action": "ask", "action": "allow"}]', "twice", id="a-key-twice"),
        pytest.param('[{"tool": "a", "action": "ask"}', "not JSON", id="cut-off"),
        pytest.param('[{"tool": "' + '\\"' * 200_000, "not JSON", id="an-open-text"),
        pytest.param("[" + "/* " * 200_000, "comment", id="an-open-comment"),
        pytest.param('[{"tool": "a", "action": "ask"/**/"x"}]', "not JSON", id="a-comment-joins-nothing"),
        pytest.param("[" + "/*/", "comment", id="half-a-comment"),
        pytest.param('[{"tool": "a", "action": "ask"}] x', "not JSON", id="something-after-it"),
        pytest.param("[" + "9" * 5000 + "]", "not JSON|object", id="a-number-of-5000-digits"),
        pytest.param('{"permissions": {"allow": ["Bash"]}}', "Claude", id="claudes-form"),
        pytest.param('{"permisions": []}', "amp.permissions", id="a-key-misspelt"),
        pytest.param('{"amp": {"permissions": []}}', "amp.permissions", id="nested-settings"),
        pytest.param('{"permissions": [], "amp.permissions": []}', "keep one", id="both"),
        pytest.param('{"amp.permissions": {"a": 1}}', "list", id="no-list"),
        pytest.param('{"amp.permissions": null}', "list", id="null"),
        pytest.param('{"amp.dangerouslyAllowAll": 1}', "true or false", id="no-boolean"),
        pytest.param('{"amp.tools.disable": "Bash"}', "list of texts", id="no-list-of-tools"),
        pytest.param("/regex/", "not JSON", id="nothing-of-the-kind"),
        pytest.param("allow Bash\npermit x", "line 2", id="a-bad-line"),
        pytest.param("ask Read --path '$HOME/*'", "no home folder", id="no-home"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_as_a_whole(text, message):
    with pytest.raises(ConfigError, match=message):
        read(text, home="")


def test_settings_beside_the_rules_are_used():
    rules = read(
        {
            "amp.permissions": [{"tool": "*", "action": "allow"}],
            "amp.tools.disable": ["oracle", "builtin:search*"],
            "amp.dangerouslyAllowAll": True,
            "amp.guardedFiles.allowlist": ["$HOME/.netrc", "*.pem"],
            "amp.url": "https://example.com",
        }
    )

    assert rules.mode == "bypassPermissions"
    assert rules.guarded_allow == ("/home/me/.netrc", "*.pem")
    assert [verdict(rules, call(name)) for name in ("oracle", "search_x", "Read")] == ["deny", "deny", "allow"]
    assert verdict(rules, call("mcp__x", "search_x")) == "allow"
    assert rules.warnings == ("rules: these settings are not used here: amp.url.",)


def test_only_enabled_tools_stay():
    rules = read({"amp.tools.enable": ["Read", "mcp__a__*"]})

    assert rules.verdict(call("read", "Read")) is None
    assert rules.verdict(call("mcp__a__x")) is None
    assert verdict(rules, bash("ls")) == "deny"


def test_a_project_neither_turns_questions_off_nor_opens_guarded_files():
    rules = read({"amp.dangerouslyAllowAll": True, "amp.guardedFiles.allowlist": ["*.pem"]}, layer="project")

    assert (rules.mode, rules.guarded_allow) == ("", ())
    assert "your own settings" in rules.warnings[0]


def test_doubtful_patterns_are_named():
    rules = read("reject Read --path '~/.ssh/*'\nallow Read --path /srv/sim")

    assert [warning.partition(":")[0] for warning in rules.warnings] == ["rules, rule 1", "rules, rule 2"]


words = st.sampled_from(["git", "git status", "git push", "ls", "rm -rf x"])
patterns = st.sampled_from(["git*", "*push*", "ls", "*", "/^git/", "/x$/", "nothing"])
lists = st.lists(st.tuples(st.sampled_from(["allow", "ask", "reject"]), patterns), max_size=6)


@given(lists, words)
def test_the_first_rule_that_matches_alone_decides(rules, command):
    entries = [{"tool": "Bash", "matches": {"cmd": pattern}, "action": action} for action, pattern in rules]
    alone = [decides([entry], bash(command)) for entry in entries]

    assert decides(entries, bash(command)) == next((one for one in alone if one), None)


@given(lists)
def test_text_and_json_say_the_same(rules):
    entries = [{"action": action, "tool": "Bash", "matches": {"cmd": pattern}} for action, pattern in rules]
    lines = "\n".join(f"{action} Bash --cmd '{pattern}'" for action, pattern in rules)

    assert read(lines) == read(entries)


steps = st.lists(st.sampled_from(["src", "..", ".", ".env", "a"]), min_size=1, max_size=4).map("/".join)
path_patterns = st.sampled_from(
    ["*", "src/*", ".*", "/ws/*", "/ws/src/*", "*.env", "/^src/", r"/^(?!\/ws)/", r"/^[^.]+$/", "/env$/", "a"]
)


@given(path_patterns, steps, st.sampled_from(["", "/ws/", "/"]), steps)
def test_what_a_rule_would_allow_the_same_rule_would_also_deny(pattern, written, start, led):
    spelled = f"{start or '/ws/'}{written}"
    subject = reading(start + written, spelled=spelled, real=os.path.normpath(f"/ws/{led}"))

    assert holds({"path": pattern}, subject, "reject") or not holds({"path": pattern}, subject, "allow")


@given(path_patterns, steps, steps)
def test_a_rule_allows_a_path_only_when_it_allows_where_the_path_leads(pattern, written, led):
    real = os.path.normpath(f"/ws/{led}")
    if holds({"path": pattern}, reading(written, real=real), "allow"):
        forms = [real, os.path.relpath(real, "/ws")]
        assert any(holds({"path": pattern}, call("t", path=form), "allow") for form in forms)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
some_keys = st.sampled_from(["tool", "action", "matches", "to", "context", "message", "x"])


@given(st.lists(st.dictionaries(some_keys, json_values | st.sampled_from(["ask", "allow", "*"])), max_size=3))
def test_any_json_is_read_or_refused(entries):
    try:
        rules = read(entries)
    except ConfigError:
        return
    assert len(rules.rules) == len(entries)
    for one in rules.rules:
        one.matches(bash("ls"))
