"""The checks of further languages and tools, one line each: the file that speaks for a check, and how it is run."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ferrule.core.checks import CheckKind
from ferrule.workspace.checks import rust
from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.row import Ecosystem, Row


class Rule(NamedTuple):
    """One check."""

    marks: str
    """Files that speak for it, any of them, between blanks: a name, `*.ending`, or `folder/` or `folder/name` below."""
    name: str
    kind: CheckKind
    command: str
    """`{own:program|otherwise}` is a program that the project may have for itself."""
    shares: str = ""
    needs: str = ""
    """Another mark that has to be there as well."""
    is_default: bool = True


_GO = (
    Rule("go.mod", "go vet", "lint", "go vet ./..."),
    # Without an output nothing is written, even where there is only one program to build.
    Rule("go.mod", "go build", "build", "go build -o /dev/null ./..."),
    Rule("go.mod", "go test", "tests", "go test ./..."),
    Rule(".golangci.yml .golangci.yaml .golangci.toml .golangci.json", "golangci-lint", "lint", "golangci-lint run"),
    Rule("staticcheck.conf", "staticcheck", "lint", "staticcheck ./..."),
)
_GRADLE = "build.gradle build.gradle.kts settings.gradle settings.gradle.kts"
_JVM = (
    Rule(_GRADLE, "gradlew check", "tests", "./gradlew check --console=plain", "gradle", "gradlew"),
    Rule(_GRADLE, "gradle check", "tests", "gradle check --console=plain", "gradle", "!gradlew"),
    Rule("pom.xml", "mvnw test", "tests", "./mvnw --batch-mode --no-transfer-progress test", "maven", "mvnw"),
    Rule("pom.xml", "mvn test", "tests", "mvn --batch-mode --no-transfer-progress test", "maven", "!mvnw"),
    Rule("build.sbt", "sbt test", "tests", "sbt -no-colors test", "sbt"),
    Rule("project.clj", "lein test", "tests", "lein test", "lein"),
)
_NATIVE = (
    # Only where somebody has configured a build: how to do that is not for a check to choose.
    Rule("CMakeLists.txt", "cmake", "build", "cmake --build build", "cmake", "build/CMakeCache.txt"),
    Rule(
        "CMakeLists.txt",
        "ctest",
        "tests",
        "ctest --test-dir build --output-on-failure",
        "cmake",
        "build/CTestTestfile.cmake",
    ),
    Rule("meson.build", "meson test", "tests", "meson test -C build", "meson", "build/build.ninja"),
    Rule("build.zig", "zig build", "build", "zig build", "zig"),
    Rule("build.zig", "zig build test", "tests", "zig build test", "zig"),
    Rule("Package.swift", "swift build", "build", "swift build", "swift"),
    Rule("Package.swift", "swift test", "tests", "swift test", "swift"),
    Rule("MODULE.bazel WORKSPACE.bazel WORKSPACE", "bazel test", "tests", "bazel test //...", "bazel"),
)
_SOLUTIONS = "*.sln *.slnx *.csproj *.fsproj *.vbproj"
_DOTNET = (
    Rule(_SOLUTIONS, "dotnet build", "build", "dotnet build", "dotnet"),
    Rule(_SOLUTIONS, "dotnet test", "tests", "dotnet test", "dotnet"),
    Rule(_SOLUTIONS, "dotnet format", "format", "dotnet format --verify-no-changes", "dotnet", is_default=False),
)
_ELIXIR = (
    Rule("mix.exs", "mix compile", "types", "mix compile", "mix"),
    Rule(".formatter.exs", "mix format", "format", "mix format --check-formatted", "mix", "mix.exs"),
    Rule(".credo.exs", "mix credo", "lint", "mix credo", "mix", "mix.exs"),
    Rule("mix.exs", "mix test", "tests", "mix test", "mix"),
    Rule("rebar.config", "rebar3 eunit", "tests", "rebar3 eunit", "rebar3"),
)
_PHP = (
    Rule("phpstan.neon phpstan.neon.dist", "phpstan", "types", "{own:phpstan} analyse --no-progress --no-ansi"),
    Rule("psalm.xml psalm.xml.dist", "psalm", "types", "{own:psalm} --no-progress --monochrome"),
    Rule("phpcs.xml phpcs.xml.dist .phpcs.xml", "phpcs", "lint", "{own:phpcs}"),
    Rule(".php-cs-fixer.php .php-cs-fixer.dist.php", "php-cs-fixer", "format", "{own:php-cs-fixer} fix --dry-run"),
    Rule("phpunit.xml phpunit.xml.dist", "phpunit", "tests", "{own:phpunit}"),
)
_RUBY = (
    Rule(".rubocop.yml", "rubocop", "lint", "bundle exec rubocop", needs="Gemfile"),
    Rule(".rubocop.yml", "rubocop", "lint", "rubocop", needs="!Gemfile"),
    Rule("sorbet/config", "srb tc", "types", "bundle exec srb tc", needs="Gemfile"),
    Rule(".rspec spec/spec_helper.rb", "rspec", "tests", "bundle exec rspec", needs="Gemfile"),
    Rule(".rspec spec/spec_helper.rb", "rspec", "tests", "rspec", needs="!Gemfile"),
    Rule("bin/rails", "rails test", "tests", "bin/rails test", needs="test/"),
    Rule("Rakefile", "rake test", "tests", "rake test", needs="test/"),
)
_DENO = (
    Rule("deno.json deno.jsonc", "deno check", "types", "deno check ."),
    Rule("deno.json deno.jsonc", "deno lint", "lint", "deno lint"),
    Rule("deno.json deno.jsonc", "deno fmt", "format", "deno fmt --check"),
    Rule("deno.json deno.jsonc", "deno test", "tests", "deno test"),
)
_DART = (
    Rule("pubspec.yaml", "dart analyze", "types", "dart analyze"),
    Rule(
        "pubspec.yaml", "dart format", "format", "dart format --output=none --set-exit-if-changed .", is_default=False
    ),
    Rule("pubspec.yaml", "flutter test", "tests", "flutter test", needs="test/ &flutter"),
    Rule("pubspec.yaml", "dart test", "tests", "dart test", needs="test/ !&flutter"),
)
_FUNCTIONAL = (
    Rule("stack.yaml", "stack test", "tests", "stack test", "haskell"),
    Rule("cabal.project *.cabal", "cabal test", "tests", "cabal test all", "haskell", "!stack.yaml"),
    Rule("dune-project", "dune build", "types", "dune build @check", "dune"),
    Rule("dune-project", "dune test", "tests", "dune test", "dune"),
    Rule("shard.yml", "crystal spec", "tests", "crystal spec", needs="spec/"),
    Rule("gleam.toml", "gleam check", "types", "gleam check", "gleam"),
    Rule("gleam.toml", "gleam test", "tests", "gleam test", "gleam"),
)
_OPERATIONS = (
    Rule("*.tf", "terraform fmt", "format", "terraform fmt -check -recursive -no-color"),
    # It needs what `terraform init` brings, out of the network.
    Rule("*.tf", "terraform validate", "types", "terraform validate -no-color", needs=".terraform/"),
    Rule(".tflint.hcl", "tflint", "lint", "tflint --recursive"),
    Rule(".shellcheckrc", "shellcheck", "lint", "shellcheck --format=gcc ./*.sh", needs="*.sh"),
    Rule(".yamllint .yamllint.yml .yamllint.yaml", "yamllint", "lint", "yamllint --format parsable ."),
    Rule(".hadolint.yaml", "hadolint", "lint", "hadolint Dockerfile", needs="Dockerfile"),
    Rule("buf.yaml", "buf lint", "lint", "buf lint"),
)


class _Table:
    """The rules of an ecosystem, and what a folder must have for any of them to hold."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        marks = [mark for rule in rules for mark in rule.marks.split()]
        self._names = {mark for mark in marks if not mark.startswith("*") and "/" not in mark}
        self._endings = tuple(mark[1:] for mark in marks if mark.startswith("*"))
        self._below = " ".join(mark for mark in marks if "/" in mark)

    def may_hold(self, files: Files) -> bool:
        """Most folders of a project have nothing of it."""
        if not files.names.isdisjoint(self._names) or _marked(files, self._below):
            return True
        return bool(self._endings) and any(name.endswith(self._endings) for name in files.names)


def _rows(table: _Table, files: Files) -> Iterator[Row]:
    for rule in table.rules if table.may_hold(files) else ():
        if (source := _marked(files, rule.marks)) and all(_holds(files, need, source) for need in rule.needs.split()):
            own = f"vendor/bin/{rule.name}"
            called = own if os.path.isfile(os.path.join(files.folder, *own.split("/"))) else rule.name
            command = rule.command.replace(f"{{own:{rule.name}}}", called)
            program = command.partition(" ")[0]
            yield Row(rule.name, rule.kind, command, source, program, rule.shares, (rule.name,), rule.is_default)


def _marked(files: Files, marks: str) -> str:
    """The first of the marks that is there, or nothing."""
    for mark in marks.split():
        if mark.startswith("*"):
            found = files.ending(mark[1:])
        elif mark.endswith("/"):
            found = mark if mark[:-1] in files.folders else ""
        elif "/" in mark:
            found = mark if os.path.isfile(os.path.join(files.folder, *mark.split("/"))) else ""
        else:
            found = files.has(mark)
        if found:
            return found
    return ""


def _holds(files: Files, need: str, source: str) -> bool:
    """`name` is there, `!name` is not, `&word` stands in the file that speaks for the check."""
    wanted = need.lstrip("!")
    is_there = wanted[1:].encode() in files.raw(source) if wanted.startswith("&") else bool(_marked(files, wanted))
    return is_there != need.startswith("!")


def _each_for_itself(_: Files) -> bool:
    return False


TABLES = (
    Ecosystem("rust", rust.rows, rust.covers),
    # `./...` does not lead into another module.
    Ecosystem("go", partial(_rows, _Table(_GO)), _each_for_itself),
    Ecosystem("jvm", partial(_rows, _Table(_JVM))),
    Ecosystem("native", partial(_rows, _Table(_NATIVE))),
    Ecosystem("dotnet", partial(_rows, _Table(_DOTNET))),
    Ecosystem("elixir", partial(_rows, _Table(_ELIXIR))),
    Ecosystem("php", partial(_rows, _Table(_PHP))),
    Ecosystem("ruby", partial(_rows, _Table(_RUBY))),
    Ecosystem("deno", partial(_rows, _Table(_DENO))),
    Ecosystem("dart", partial(_rows, _Table(_DART))),
    Ecosystem("functional", partial(_rows, _Table(_FUNCTIONAL))),
    Ecosystem("operations", partial(_rows, _Table(_OPERATIONS))),
)
