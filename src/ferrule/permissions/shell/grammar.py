"""The grammar's own names for what a command line is made of, and its one tree."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# Several tokens of bash, or one, that are one word or one part of a word.
ATOMS = frozenset(
    {
        *("word", "concatenation", "string", "raw_string", "ansi_c_string", "translated_string", "number"),
        *("simple_expansion", "expansion", "arithmetic_expansion", "command_substitution", "process_substitution"),
        *("variable_name", "special_variable_name", "file_descriptor", "test_operator", "regex", "extglob_pattern"),
        *("variable_assignment", "brace_expression", "subscript", "array", "comment"),
        *("heredoc_start", "heredoc_body", "heredoc_end"),
    }
)
SEQUENCES = frozenset(
    {
        *("program", "compound_statement", "subshell", "command_substitution", "process_substitution", "do_group"),
        *("if_statement", "elif_clause", "else_clause", "while_statement", "case_item"),
    }
)
# Newlines may stand between their parts without ending anything.
LOOSE = SEQUENCES | {
    *("for_statement", "c_style_for_statement", "case_statement", "function_definition"),
    *("test_command", "binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"),
}
TIGHT = frozenset(
    {
        *("command", "command_name", "redirected_statement", "file_redirect", "herestring_redirect"),
        *("declaration_command", "unset_command", "negated_command", "variable_assignments"),
    }
)
_EXPRESSIONS = frozenset(
    {"binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"},
)
# No whole command may hang directly below these: bash would not read one there.
WORDS_ONLY = _EXPRESSIONS | {"command", "test_command", "declaration_command", "unset_command", "file_redirect"}
PARTS_OF_COMMANDS = ATOMS | _EXPRESSIONS | {"command_name", "file_redirect", "herestring_redirect"}
CONTAINERS = LOOSE | TIGHT | {"list", "pipeline", "heredoc_redirect"}

OPERATORS = frozenset(
    {
        *(b";", b"&", b"&&", b"||", b"|", b"|&", b"(", b")", b";;", b";&", b";;&"),
        *(b"<", b">", b">>", b">|", b"&>", b"&>>", b"<&", b">&", b"<&-", b">&-", b"<<", b"<<-", b"<<<"),
    }
)
KEYWORDS = frozenset(
    {
        *(b"if", b"then", b"elif", b"else", b"fi", b"for", b"select", b"in", b"do", b"done", b"while", b"until"),
        *(b"case", b"esac", b"function", b"{", b"}", b"!", b"[", b"]", b"[[", b"]]"),
        *(b"declare", b"typeset", b"export", b"readonly", b"local", b"unset", b"unsetenv"),
        # Inside of `[[ ]]` and `[ ]`.
        *(b"=", b"==", b"!=", b"=~", b"-a", b"-o", b"+", b"-", b"<=", b">="),
    }
)
RESERVED = frozenset(
    {
        *(b"if", b"then", b"elif", b"else", b"fi", b"for", b"select", b"in", b"do", b"done", b"while", b"until"),
        *(b"case", b"esac", b"function", b"{", b"}", b"!", b"[[", b"]]", b"time", b"coproc"),
    }
)
# The grammar's scanner asks the C library whether what follows `{` is a digit, which for a character above U+00FF
# reads memory that is not its own: most often it is told nonsense, and sometimes the process dies.
_WIDE_IN_BRACE = re.compile(rb"(\{[0-9]*(?:\.\.[0-9]*)?)([\xc4-\xf4][\x80-\xbf]+)")


@cache
def _language() -> "Language":
    # Loading the grammar is for the first command line to pay.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def tree(source: bytes) -> "Node":
    """Return the root of the line's tree; its offsets are those of `source`, which is UTF-8."""
    import tree_sitter

    return tree_sitter.Parser(_language()).parse(_WIDE_IN_BRACE.sub(_narrow, source)).root_node


def _narrow(found: re.Match[bytes]) -> bytes:
    """Return what was found with a Latin character of the same kind and length for the wide one."""
    letter = "\u00e9" if found[2].decode().isalpha() else "\u00d7"
    return found[1] + letter.encode().ljust(len(found[2]), b"x")
