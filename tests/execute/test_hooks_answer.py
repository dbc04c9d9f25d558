"""What hooks answer: every form of the protocol, and that no answer raises or passes for less than it may have been."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.hooks import EVENTS
from ferrule.hooks.answer import TEXT_CHARS, HookAnswer, failure, from_exit, from_object
from tests.rows import each_row

WHO = "The hook"
NO_REASON = "A hook refused this and gave no reason."
OBJECTING = {
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PermissionRequest",
}


def before(**fields):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


@each_row(
    ("answer", "expected"),
    [
        pytest.param({}, HookAnswer(), id="nothing"),
        pytest.param(None, HookAnswer(), id="none"),
        pytest.param(before(permissionDecision="allow"), HookAnswer("allow"), id="allow"),
        pytest.param(
            before(permissionDecision="deny", permissionDecisionReason="Not on main."),
            HookAnswer("deny", "Not on main."),
            id="deny",
        ),
        pytest.param(before(permissionDecision="deny"), HookAnswer("deny", NO_REASON), id="deny-without-a-reason"),
        pytest.param(
            before(permissionDecision="ask", permissionDecisionReason="Sure?"), HookAnswer("ask", "Sure?"), id="ask"
        ),
        pytest.param(before(updatedInput={"a": 1}), HookAnswer(input={"a": 1}), id="another-input"),
        pytest.param(
            before(permissionDecision="allow", updatedInput={"a": 1}), HookAnswer("allow", input={"a": 1}), id="both"
        ),
        pytest.param(
            before(permissionDecision="deny", updatedInput={"a": 1}),
            HookAnswer("deny", NO_REASON),
            id="what-is-denied-has-no-input",
        ),
        pytest.param(before(additionalContext="Mind the gap."), HookAnswer(context="Mind the gap."), id="context"),
        pytest.param(
            {"hookSpecificOutput": {"permissionDecision": "allow"}}, HookAnswer("allow"), id="event-not-named"
        ),
        pytest.param({"decision": "approve", "reason": "fine"}, HookAnswer("allow", "fine"), id="older-approve"),
        pytest.param({"decision": "block", "reason": "no"}, HookAnswer("deny", "no"), id="older-block"),
        pytest.param(
            {"decision": "block", **before(permissionDecision="allow")},
            HookAnswer("deny", NO_REASON),
            id="the-stricter",
        ),
        pytest.param(
            {"decision": "approve", **before(permissionDecision="ask", permissionDecisionReason="Sure?")},
            HookAnswer("ask", "Sure?"),
            id="the-stricter-the-other-way",
        ),
        pytest.param(
            {"continue": False, "stopReason": "Halt.", **before(permissionDecision="allow")},
            HookAnswer("deny", "Halt.", stop="Halt."),
            id="not-to-go-on-refuses",
        ),
        pytest.param({"continue": True, "suppressOutput": True}, HookAnswer(), id="to-go-on"),
        pytest.param({"systemMessage": "Hello."}, HookAnswer(told=("Hello.",)), id="a-word-to-the-user"),
        pytest.param({"decision": None, "hookSpecificOutput": None}, HookAnswer(), id="null-is-nothing"),
        pytest.param({"futureField": [1]}, HookAnswer(), id="what-nobody-knows-yet"),
    ],
)
def test_what_an_answer_before_a_call_means(answer, expected):
    assert from_object("PreToolUse", WHO, answer) == expected


@each_row(
    "answer",
    [
        pytest.param(before(permissionDecision="defer"), id="an-unknown-decision"),
        pytest.param(before(permissionDecision="Deny"), id="in-other-letters"),
        pytest.param(before(permissionDecision=False), id="a-decision-that-is-no-text"),
        pytest.param({"decision": "deny"}, id="an-unknown-older-decision"),
        pytest.param({"decision": ["block"]}, id="a-list-of-decisions"),
        pytest.param({"permissionDecision": "allow"}, id="in-the-wrong-place"),
        pytest.param({"updatedInput": {}}, id="an-input-in-the-wrong-place"),
        pytest.param(before(updatedInput="rm"), id="an-input-that-is-no-object"),
        pytest.param({"continue": "false"}, id="a-flag-that-is-a-text"),
        pytest.param({"hookSpecificOutput": "deny"}, id="a-part-that-is-a-text"),
        pytest.param({"hookSpecificOutput": []}, id="a-part-that-is-a-list"),
        pytest.param(
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "allow"}}, id="another-event"
        ),
        pytest.param(before(permissionDecision="allow", permissionDecisionReason=7), id="a-reason-that-is-no-text"),
        pytest.param({"systemMessage": 7, **before(permissionDecision="allow")}, id="a-mistake-elsewhere"),
        pytest.param([], id="a-list"),
        pytest.param("deny", id="a-text"),
        pytest.param(0, id="a-number"),
    ],
)
def test_a_decision_that_is_not_understood_is_asked_about(answer):
    said = from_object("PreToolUse", WHO, answer)

    assert said.verdict == "ask"
    assert said.reason.startswith(WHO)
    assert said.told == (said.reason,)


def test_a_mistake_beside_a_refusal_leaves_it_one():
    said = from_object("PreToolUse", WHO, {"decision": "block", "reason": 5})

    assert (said.verdict, said.told) == ("deny", ("The hook answered with a number as reason.",))


def test_a_mistake_without_a_decision_is_only_told():
    assert from_object("PreToolUse", WHO, {"systemMessage": 5, "suppressOutput": "no"}) == HookAnswer(
        told=("The hook answered with a number as systemMessage and a string as suppressOutput.",)
    )


@each_row(
    ("event", "answer", "expected"),
    [
        pytest.param("PostToolUse", {"decision": "block", "reason": "Lint."}, HookAnswer("deny", "Lint."), id="block"),
        pytest.param("PostToolUse", {"decision": "block"}, HookAnswer("deny", NO_REASON), id="block-without-a-reason"),
        pytest.param(
            "PostToolUse",
            {"continue": False, "stopReason": "Halt."},
            HookAnswer("deny", "Halt.", stop="Halt."),
            id="stop",
        ),
        pytest.param(
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "Not this."}}},
            HookAnswer("deny", "Not this."),
            id="no-to-a-question",
        ),
        pytest.param("PostToolUse", {"decision": "approve", "reason": "x"}, HookAnswer(), id="nothing-to-approve"),
        pytest.param(
            "PostToolUse",
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "Seen."}},
            HookAnswer(context="Seen."),
            id="context",
        ),
        pytest.param(
            "PostToolUse", {"additionalContext": "Seen."}, HookAnswer(context="Seen."), id="context-at-the-top"
        ),
        pytest.param("PostToolUse", before(updatedInput={"a": 1})["hookSpecificOutput"], HookAnswer(), id="no-input"),
        pytest.param(
            "PostToolUse",
            {"decision": 1},
            HookAnswer(told=("The hook answered with a number as decision, which is one of approve, block.",)),
            id="a-mistake-is-told",
        ),
        pytest.param(
            "PostToolUse", [], HookAnswer(told=("The hook answered with a list instead of an object.",)), id="list"
        ),
        pytest.param("Stop", {"decision": "block", "reason": "Go on."}, HookAnswer("deny", "Go on."), id="not-yet"),
        pytest.param(
            "Stop",
            {"continue": False},
            HookAnswer(stop="A hook stopped the work and gave no reason."),
            id="to-stop-a-stop-is-no-objection",
        ),
        pytest.param(
            "SessionStart",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "Hi."}},
            HookAnswer(context="Hi."),
            id="at-the-start",
        ),
        pytest.param("SessionStart", {"decision": "block", "reason": "x"}, HookAnswer(), id="nothing-to-block"),
        pytest.param(
            "Notification", {"continue": False, "stopReason": "x"}, HookAnswer(told=("x",)), id="nothing-to-stop"
        ),
    ],
)
def test_what_other_answers_mean(event, answer, expected):
    assert from_object(event, WHO, answer) == expected


@each_row(
    ("exit_code", "stdout", "stderr", "expected"),
    [
        pytest.param(0, b"", b"", HookAnswer(), id="0-silently"),
        pytest.param(0, b"all good\n", b"noise", HookAnswer(), id="0-with-a-text"),
        pytest.param(0, b'\xef\xbb\xbf {"decision":"approve"}\r\n', b"", HookAnswer("allow"), id="0-with-an-answer"),
        pytest.param(2, b'{"decision":"approve"}', b"No.\n", HookAnswer("deny", "No."), id="2-refuses"),
        pytest.param(2, b"", b"", HookAnswer("deny", NO_REASON), id="2-silently"),
        pytest.param(2, b"", b"n\xffo", HookAnswer("deny", "n\ufffdo"), id="2-in-no-utf8"),
        pytest.param(1, b'{"decision":"block"}', b"", HookAnswer(told=("The hook failed with exit code 1.",)), id="1"),
        pytest.param(1, b"", b"oh\n", HookAnswer(told=("The hook failed with exit code 1: oh",)), id="1-with-a-reason"),
        pytest.param(255, b"", b"", HookAnswer(told=("The hook failed with exit code 255.",)), id="255"),
        pytest.param(
            127, b"", b"", failure("PreToolUse", WHO, "could not be run (exit code 127)"), id="127-could-not-run"
        ),
        pytest.param(126, b"", b"", failure("PreToolUse", WHO, "could not be run (exit code 126)"), id="126"),
        pytest.param(137, b"", b"", failure("PreToolUse", WHO, "was ended by signal 9"), id="killed"),
    ],
)
def test_what_an_exit_code_means_before_a_call(exit_code, stdout, stderr, expected):
    assert from_exit("PreToolUse", WHO, exit_code, stdout, stderr) == expected


@each_row(
    ("stdout", "verdict"),
    [
        pytest.param(b'{"decision":"block"', "ask", id="cut-short"),
        pytest.param(b'{"hookSpecificOutput": {"perm', "ask", id="cut-shorter"),
        pytest.param(b'{"decision":"approve"} trailing', "ask", id="more-than-an-answer"),
        pytest.param(b"{'decision': 'block'}", "ask", id="not-quite-json"),
        pytest.param(b'{"decision":"bl\xff"}', "ask", id="no-utf8"),
        pytest.param(b'{"decision":"approve","reason":"\\ud800"}', "ask", id="half-a-character"),
        pytest.param(b'{"continue":' + b"[" * 100_000, "ask", id="nested-without-end"),
        pytest.param(b'welcome!\n{"decision":"block"}', "ask", id="behind-a-greeting"),
        pytest.param(b"[1]", "", id="a-list"),
        pytest.param(b"{ pretty banner }", "", id="no-answer-at-all"),
        pytest.param(b"my decision: none", "", id="a-word-in-a-text"),
        pytest.param(b"\xff\xfe\x00", "", id="bytes"),
    ],
)
def test_output_before_a_call_that_cannot_be_read(stdout, verdict):
    assert from_exit("PreToolUse", WHO, 0, stdout, b"").verdict == verdict


@each_row("event", EVENTS)
def test_what_exit_code_2_means_at_each_event(event):
    said = from_exit(event, WHO, 2, b"", b"No.")

    assert said == (HookAnswer("deny", "No.") if event in OBJECTING else HookAnswer(told=("The hook says: No.",)))


@each_row("event", EVENTS)
def test_plain_text_is_context_where_a_conversation_begins(event):
    context = "Today: rain." if event in {"SessionStart", "UserPromptSubmit"} else ""

    assert from_exit(event, WHO, 0, b"Today: rain.\n", b"") == HookAnswer(context=context)


@each_row("event", EVENTS)
def test_a_failure_asks_before_a_call_and_is_told_otherwise(event):
    said = failure(event, WHO, "fell")

    assert said.told == ("The hook fell.",)
    assert said.verdict == ("ask" if event == "PreToolUse" else "")


def test_long_texts_are_cut():
    long = "x" * 1_000_000
    said = from_object(
        "PreToolUse",
        WHO,
        {
            "systemMessage": long,
            **before(permissionDecision="deny", permissionDecisionReason=long, additionalContext=long),
        },
    )

    for text in (said.reason, said.context, *said.told):
        assert text == "x" * TEXT_CHARS + " …"
    assert len(from_exit("PreToolUse", WHO, 1, b"", long.encode()).told[0]) <= TEXT_CHARS + 2


NAMES = st.sampled_from(
    [
        "decision",
        "reason",
        "continue",
        "stopReason",
        "suppressOutput",
        "systemMessage",
        "hookSpecificOutput",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
        "additionalContext",
        "hookEventName",
        "x",
    ]
)
WORDS = st.sampled_from(["allow", "deny", "ask", "approve", "block", "PreToolUse", "PostToolUse", ""]) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(), inner, max_size=6),
    max_leaves=20,
)


@given(event=st.sampled_from(EVENTS), answer=VALUES, exit_code=st.sampled_from([0, 0, 0, 1, 2, 127, 137]))
def test_no_answer_raises_and_each_is_one_that_the_engine_knows(event, answer, exit_code):
    for said in (
        from_object(event, WHO, answer),
        from_exit(event, WHO, exit_code, json.dumps(answer).encode(), b""),
    ):
        assert said.verdict in {"", "allow", "ask", "deny"}
        assert said.verdict in {"", "deny"} or event == "PreToolUse"
        assert said.input is None or (event == "PreToolUse" and isinstance(said.input, dict))
        assert all(isinstance(text, str) for text in (said.reason, said.context, *said.told))


@given(event=st.sampled_from(EVENTS), stdout=st.binary(), stderr=st.binary(), exit_code=st.integers(0, 255))
def test_no_output_raises(event, stdout, stderr, exit_code):
    assert from_exit(event, WHO, exit_code, stdout, stderr).verdict in {"", "allow", "ask", "deny"}


@given(answer=VALUES)
def test_an_answer_that_only_almost_allows_never_allows(answer):
    """Whatever else is in it: an answer is an `allow` only where one is said in the right place."""
    said = from_object("PreToolUse", WHO, answer)

    if said.verdict == "allow":
        part = answer.get("hookSpecificOutput") or {}
        assert part.get("permissionDecision") == "allow" or answer.get("decision") == "approve"
        assert answer.get("continue") is not False
        assert answer.get("decision") != "block"
