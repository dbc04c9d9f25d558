"""What a hook's word changes about a decision: it can only be stricter, or spare a question that no rule demands."""

import pytest

from ferrule.permissions import Case, Decision, apply_hooks
from tests.rows import each_row

ALLOW = Decision("allow", "It only reads.")
ASK = Decision("ask", "No rule covers it.")
ASK_BY_RULE = Decision("ask", "A rule asks.", "Bash(git push *)")
ASK_FIXED = Decision("ask", "It would run outside the sandbox.", fixed=True)
DENY = Decision("deny", "A rule denies it.", "Bash(rm *)", fixed=True)


@each_row(
    ("decision", "verdict", "expected"),
    [
        pytest.param(ALLOW, "", "allow", id="no-word-on-what-is-allowed"),
        pytest.param(ALLOW, "allow", "allow", id="yes-to-what-is-allowed"),
        pytest.param(ALLOW, "ask", "ask", id="asks-about-what-is-allowed"),
        pytest.param(ALLOW, "deny", "deny", id="refuses-what-is-allowed"),
        pytest.param(ASK, "allow", "allow", id="spares-a-question"),
        pytest.param(ASK, "ask", "ask", id="asks-what-would-ask"),
        pytest.param(ASK, "deny", "deny", id="refuses-what-would-ask"),
        pytest.param(ASK_BY_RULE, "allow", "ask", id="a-rule-that-asks-stays"),
        pytest.param(ASK_FIXED, "allow", "ask", id="what-no-mode-softens-stays"),
        pytest.param(DENY, "allow", "deny", id="a-deny-stays"),
        pytest.param(DENY, "ask", "deny", id="a-deny-is-not-asked-about"),
        pytest.param(DENY, "deny", "deny", id="both-refuse"),
    ],
)
def test_the_stricter_word_counts(decision, verdict, expected):
    case = Case("1", "Bash", "shell", (), hooked=(verdict, "because"))

    assert (apply_hooks(decision, case) if verdict else decision).verdict == expected


def test_a_hook_lets_nothing_out_of_the_sandbox():
    case = Case("1", "Bash", "shell", (), input={"outside": True}, hooked=("allow", ""))

    assert apply_hooks(ASK, case).verdict == "ask"


def test_the_reason_of_a_hook_reaches_the_model():
    said = apply_hooks(ALLOW, Case("1", "Bash", "shell", (), hooked=("deny", "not on Fridays")))

    assert (said.message, said.fixed) == ("not on Fridays", True)
