"""The program that `warm` starts: it turns pages into Markdown, each under limits that it cannot lift.

It runs without `site` and imports nothing of Ferrule but the walls of `decoding`, which stands on its own too. What it
needs to know is its only argument; pages come on its standard input, one after the other: a line of JSON and then as
many bytes as that announces. Each is answered in the same form. The libraries are loaded once. Then it closes itself
in as `decoding` does, and has a process of its own read each page, where the system can fork: what a page does to
that ends with it, and the next page finds everything as it was.

The Markdown is html-to-markdown's. Which part of a page is its main one is told by the page, if it has a `<main>` or
one `<article>`; if it has neither, trafilatura tells where the text begins and ends. No more than half of the words of
a page are ever left out on such a word.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


# Exit codes.
_DAMAGED = 1
_UNLOADED = 4

_LINE_BYTES = 65_536
_SOUP_CHARS = 100_000
"""A larger page without a main part is given whole: trafilatura would take longer than everything else."""
_CHROME = (
    *("nav", "footer", "aside", "dialog", "[role=navigation]", "[role=banner]", "[role=contentinfo]", "[role=search]"),
    *("[role=complementary]", "[role=dialog]", "[aria-hidden=true]", ".headerlink", ".site-header", ".site-footer"),
)
"""What surrounds the text of a page."""
_INSIDE = ("nav", "[role=navigation]", "[role=search]", "[role=dialog]", "[aria-hidden=true]", ".headerlink")
"""What does so in its main part: an aside is a remark there."""
_LITTLE = 200
"""Characters: less than this is suspicious of a page that is much longer."""
_TAG_CHARS = 8192
"""A longer tag loses its attributes: they are pictures that are written into the page, or worse."""
_LANGUAGE = r"[A-Za-z0-9_+#.-]{1,30}"
_NO_LANGUAGE = frozenset({"default", "notranslate", "text", "none", "plain", "highlight", "source"})
_MARK_CHARS = 60

Convert = Callable[[str, tuple[str, ...]], str]
"""A page, and what to leave out of it → Markdown or text."""


def main() -> None:
    wanted = json.loads(sys.argv[1])
    walls = _walls(wanted["decoding"])
    sys.path.extend(wanted["folders"])
    try:
        _load()
    except ImportError:
        os._exit(_UNLOADED)
    if sys.platform == "linux":
        own = [os.path.dirname(os.__file__), *wanted["readable"], *walls.SYSTEM]
        walls.confine(own, bytes.fromhex(wanted["rules"]))
    serve = _serve_apart if hasattr(os, "fork") else _serve
    with open(0, "rb", closefd=False) as orders:
        _say({"ready": True})
        while line := orders.readline(_LINE_BYTES):
            order = json.loads(line)
            page = orders.read(order["length"])
            if len(page) < order["length"]:
                break  # whoever asked is gone
            serve(order, page, lambda: walls.limit(wanted["seconds"], wanted["memory_bytes"]))
    os._exit(0)


def _walls(path: str) -> "ModuleType":
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("decoding", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load() -> None:
    """Load and warm up all that will be needed, while nothing hostile is here."""
    import html_to_markdown

    html_to_markdown.convert("<p>warm</p>")
    with contextlib.suppress(ImportError):
        import trafilatura

        trafilatura.extract("<html><body><p>Some words to warm up with.</p></body></html>", output_format="txt")


def _serve_apart(order: dict[str, Any], page: bytes, limit: Callable[[], None]) -> None:
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if status:
            _say({"id": order["id"], "wrong": status})
        return
    exit_code = _DAMAGED
    try:
        os.close(0)  # the next page is not this one's to read
        limit()
        _stay_alone()
        _answer(order, page)
        exit_code = 0
    finally:
        os._exit(exit_code)  # libraries that have met a hostile page are not asked to tidy up


def _stay_alone() -> None:
    """Start no other process, which could outlive the page."""
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError, ValueError):  # as with the other limits
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _serve(order: dict[str, Any], page: bytes, limit: Callable[[], None]) -> None:  # noqa: ARG001 - there are none there
    _answer(order, page)


def _answer(order: dict[str, Any], page: bytes) -> None:
    text, is_cut = convert_page(page.decode("utf-8", "replace"), order["address"], order["form"])
    _say({"id": order["id"], "is_cut": is_cut}, text.encode("utf-8", "replace"))


def _say(said: dict[str, Any], data: bytes = b"") -> None:
    with open(1, "wb", closefd=False) as out:
        out.write(json.dumps({**said, "length": len(data)}).encode() + b"\n" + data)


def convert_page(page: str, address: str, form: str) -> tuple[str, bool]:
    """The main part of a page, and whether something in it was too deep to be reached."""
    convert, cuts = _converter(_start_of_links(page, address), form)
    # So many attributes are nobody's who writes a page, and a parser may compare each with each.
    page = re.sub(rf"<([A-Za-z][A-Za-z0-9]*+)[^<>]{{{_TAG_CHARS},}}+>", r"<\1>", page)
    page = "".join(_with_languages(page))
    text = convert(page, _CHROME)
    part = _main_part(page)
    if part:
        inner = convert(part, _INSIDE)
        text = inner if 2 * len(inner) >= len(text) else text
    elif len(page) <= _SOUP_CHARS:
        text = _trim_text(text, page)
    if len(text) < _LITTLE or 50 * len(text) < len(page):
        whole = convert(page, ())
        text = whole if len(whole) > 2 * len(text) else text
    return text.strip() + "\n", bool(cuts)


def _converter(address: str, form: str) -> tuple[Convert, list[str]]:
    """What converts, and a list in which it says what it could not."""
    import html_to_markdown

    cuts: list[str] = []

    def convert(page: str, without: tuple[str, ...]) -> str:
        options = html_to_markdown.ConversionOptions(
            base_url=address,
            compact_tables=True,
            exclude_selectors=list(without),
            extract_metadata=False,
            inline_data_media="alt_text_only",
            output_format="plain" if form == "text" else "markdown",
            # It would take away forms, and some sites are one form.
            preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
        )
        done = html_to_markdown.convert(page, options)
        cuts[:] = [str(one.kind) for one in done.warnings if "depth" in str(one.kind)]
        return done.content or ""

    return convert, cuts


def _start_of_links(page: str, address: str) -> str:
    """What the links of the page start from."""
    from urllib.parse import urljoin

    found = re.search(r"""(?i)<base\s[^<>]{0,300}?href\s{0,9}=\s{0,9}["']?([^<>"'\s]{1,2000})""", page[:_SOUP_CHARS])
    if found is None:
        return address
    with contextlib.suppress(ValueError):
        joined = urljoin(address, found[1])
        return joined if joined.startswith(("https://", "http://")) else address
    return address


def _main_part(page: str) -> str:
    """From the beginning of the main part to its end; nothing where the page does not say which it is."""
    for name in ("main", "article"):
        starts = [found.start() for found in re.finditer(rf"(?i)<{name}(?=[\s>])", page)]
        ends = [found.end() for found in re.finditer(rf"(?i)</{name}\s{{0,9}}>", page)]
        if starts and ends and ends[-1] > starts[0]:
            # Of several articles none is the main one; they may be the items of a list, or comments.
            return page[starts[0] : ends[-1]] if name == "main" or len(starts) == 1 else ""
    return ""


def _with_languages(page: str) -> Iterator[str]:
    """The page with the language of each block of code where the converter looks for it.

    Sites write it to the block itself, or to one of two boxes around it.
    """
    at, hint, hint_end, opened = 0, "", 0, 0
    for found in re.finditer(r"(?i)<(?P<name>div|figure|pre|code)(?=[\s>])(?P<rest>[^<>]*+)>|</pre\s{0,9}>", page):
        name = (found["name"] or "").lower()
        language = _language(found["rest"] or "") if name and "=" in found["rest"] else ""
        if name in {"div", "figure"}:
            hint, hint_end = (language, found.end()) if language else (hint, hint_end)
        elif name == "pre" and not opened:
            language = language or (hint if found.start() - hint_end < 300 else "")
            hint = ""
            inner = re.compile(r"(?i)\s{0,99}<code(?=[\s>])([^<>]*+)>").match(page, found.end())
            if inner is not None and language and not _language(inner[1]):
                yield page[at : found.end()] + f'<code class="language-{language}">'
                at = inner.end()
            elif inner is None and language:
                yield page[at : found.end()] + f'<code class="language-{language}">'
                at = opened = found.end()
        elif not name and opened:
            yield page[at : found.start()] + "</code>"
            at, opened = found.start(), 0
    yield page[at:]
    if opened:
        yield "</code>"


def _language(attributes: str) -> str:
    """The language that the attributes of a tag tell."""
    for pattern in (
        rf"(?i)\b(?:language-|lang-|highlight-source-|highlight-|brush:\s?|sourceCode )({_LANGUAGE})",
        rf"""(?i)\b(?:data-lang(?:uage)?|lang)\s{{0,9}}=\s{{0,9}}["']?({_LANGUAGE})""",
    ):
        for found in re.finditer(pattern, attributes):
            name = found[1].lower()
            if name not in _NO_LANGUAGE:
                return name
    return ""


def _trim_text(text: str, page: str) -> str:
    """The text from where trafilatura sees its beginning to where it sees its end; code and tables are always in it."""
    try:
        import trafilatura
    except ImportError:
        return text
    try:
        found = trafilatura.extract(page, output_format="txt", include_comments=True, favor_recall=True)
    except Exception:  # noqa: BLE001 - foreign code on a hostile page: whatever it raises, there is the whole text
        return text
    seen = _letters(found or "")
    blocks = list(_blocks(text))
    kept = [at for at, block in enumerate(blocks) if _is_kept(block, seen)]
    if not seen or not kept:
        return text
    first = kept[0]
    while first and blocks[first - 1].startswith("#"):
        first -= 1
    inner = "\n\n".join(blocks[first : kept[-1] + 1])
    return inner if 2 * len(inner) >= len(text) else text


def _is_kept(block: str, seen: str) -> bool:
    if block.startswith(("```", "|", "~~~")):
        return True
    mark = _letters(re.sub(r"\]\([^()\s]*+\)", "", block))[:_MARK_CHARS]
    return bool(mark) and mark in seen


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _blocks(text: str) -> Iterator[str]:
    """What blank lines set apart, with blocks of code in one piece."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence or line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
        mark = re.match(r"`{3,}", line)
        if mark is not None:
            fence = "" if fence and line.startswith(fence) else fence or mark[0]
    if lines:
        yield "\n".join(lines)


if __name__ == "__main__":
    main()
