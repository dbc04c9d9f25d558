"""Counting tokens offline: by a tokenizer where one is installed, else by an estimate that says so."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.registry import dynamic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("a", 1, id="one-byte"),
        pytest.param("abcd", 1, id="four"),
        pytest.param("abcde", 2, id="five"),
        pytest.param("äöü", 2, id="bytes-and-not-characters"),
        pytest.param(b"abcdefgh", 2, id="bytes"),
    ],
)
def test_an_estimate_is_four_bytes_a_token_rounded_up(text, expected):
    assert dynamic.estimate(text) == expected


def test_the_tokenizer_is_named():
    assert dynamic.name() == "o200k_base"
    assert dynamic.count("hello world") == 2
    assert dynamic.count("") == 0


def test_special_tokens_in_a_text_are_text():
    assert dynamic.count("<|endoftext|>") > 1


@given(st.text(st.characters(), max_size=200))
def test_whatever_the_text_it_has_a_number_of_tokens(text):
    assert 0 <= dynamic.count(text) <= len(text.encode(errors="surrogatepass"))
    assert dynamic.estimate(text) >= 0


WITHOUT = """
import sys
sys.modules["splintr"] = None
from ferrule.registry import dynamic as tokens
print(tokens.name(), tokens.count("abcde"))
"""

UNLOADED = """
import sys
from ferrule.registry.dynamic import Costs
from ferrule.registry import dynamic as tokens
tokens.estimate("abc")
print("splintr" in sys.modules)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param(WITHOUT, "estimate (bytes / 4) 2", id="without-a-tokenizer"),
        pytest.param(UNLOADED, "False", id="an-estimate-loads-none"),
    ],
)
def test_the_tokenizer_is_an_extra_that_only_counting_loads(code, printed):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == printed
