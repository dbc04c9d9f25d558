"""Rows of the programs that build: make and its like, Rust, Go, C, Java."""

import re
from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

_MAKE_DANGERS = (
    "-f --file --makefile -I --include-dir --eval= loads rules; -E= evaluates text; -e --environment-overrides="
    " changes variables; -o -W --what-if --new-file= changes what is made; -S= undoes a flag"
)
_CARGO = (
    "-qvr -p:x -j:n -F:x --quiet --verbose --release --all --workspace --all-targets --all-features"
    " --no-default-features --features:x --package:x --exclude:x --lib --bins --bin:x --examples --example:x"
    " --tests --test:x --benches --bench:x --jobs:n --profile:x --locked --offline --frozen --message-format:x"
    " --color:x --keep-going --no-run --no-fail-fast --doc --no-deps --document-private-items --target:x --timings"
    " --fix --allow-dirty --allow-staged"
)
_CARGO_DANGERS = (
    "--config -Z= changes settings; --manifest-path -C= takes another project; --target-dir --artifact-dir"
    " --out-dir --root --path= writes elsewhere; --git --registry --index= takes packages from elsewhere; --open="
    " runs a browser"
)
_GO = (
    "-v -x -n -race -cover -short -json -failfast -i -a -run:x -skip:x -bench:x -benchmem -benchtime:x -count:n"
    " -timeout:x -parallel:n -p:n -cpu:x -tags:x -mod:=readonly|vendor|mod -covermode:x -coverpkg:x -trimpath"
    " -buildvcs:x -shuffle:x -list:x -fuzz:x -fuzztime:x -msan -asan -fullpath"
)
_GO_DANGERS = (
    "-exec -toolexec -vettool= runs a program; -o -coverprofile -cpuprofile -memprofile -trace -outputdir -pkgdir"
    " -blockprofile -mutexprofile= writes a file; -overlay -modfile -modcacherw -pgo= loads a file; -ldflags"
    " -gcflags -asmflags -gccgoflags -compiler= may run a program; -C= takes another project; -w -u= changes"
    " settings; -args= hands over words"
)
_C_FLAGS = (
    r"-W(?![alp],)[a-z0-9=+-]*|-O[0-3sgz]?|-std=[a-z0-9+]+|-D\w+(=\w*)?|-U\w+|-g[0-3]?|-l[\w+-]+"
    r"|-f(no-[a-z-]+|PIC|pic|PIE|pie|sanitize=[a-z,]+|stack-protector(-strong|-all)?|omit-frame-pointer|exceptions|rtti)"
    r"|-f(visibility=hidden|openmp|diagnostics-color(=\w+)?|lto|common|wrapv|max-errors=\d+|syntax-only|strict-aliasing)"
    r"|-m(arch|tune|cpu)=[\w.+-]+|-m(32|64|avx2?|avx512f|sse[0-9.]*|fma|native)|-[IL][\w./-]+"
)


_BELOW = r"(?!(?:\S*/)?\.\.(?:/|$))(?:\w[\w./-]*|\.(?:/[\w./-]*)?)"
"""A package below this folder, or one by its name; `./...` is all of them."""


def _targets(given: CommandArguments) -> ArgumentAnalysis:
    """A word with `=` sets a variable, which may name a program that runs."""
    plain = r"(?:V|VERBOSE|DEBUG|CI|JOBS|TESTS?|PROFILE|VERSION|TAG)=[\w.-]*"
    sets = any("=" in word.text and not re.fullmatch(plain, word.text) for word in given.operands)
    return ArgumentAnalysis("make sets a variable that may name a program" if sets else "")


def _packages(given: CommandArguments) -> ArgumentAnalysis:
    """A package that is not below this folder is fetched from elsewhere."""
    name = given.operands[0].text if given.operands and given.operands[0].known else ""
    plain = re.fullmatch(_BELOW, name) and (name.startswith(".") or name.endswith(".go"))
    return ArgumentAnalysis("" if plain else "go run takes a package from elsewhere")


def _gofmt(given: CommandArguments) -> ArgumentAnalysis:
    files = tuple(word.text for word in given.operands if word.known)
    return ArgumentAnalysis(writes=files if given.has("-w") else ())


_CARGO_SUBS = ("build", "b", "check", "c", "test", "t", "clippy", "run", "r", "bench", "doc", "nextest", "miri")

ROWS: Mapping[str, Form] = {
    "make, gmake": Form(
        "-kisnqBtwrRd -j? -l? -C:d --jobs? --keep-going --silent --quiet --dry-run --just-print --always-make"
        " --question --directory:d --no-print-directory --print-directory --touch --output-sync? -O? --trace"
        " --version",
        "text*", project=True, unsure=True, check=_targets, dangers=_MAKE_DANGERS,
    ),
    "just, task, rake": Form(
        "-lnq --list --summary --dry-run --quiet --version --show:x", "text*", project=True, unsure=True,
        check=_targets,
    ),
    "cmake": Form(
        "-S:r -B:w -G:x -j? --build:w --target:x --config:x --parallel? --clean-first --version --list-presets"
        " --preset:x --fresh --verbose -L",
        "read?", project=True, unsure=True,
        also=r"-DCMAKE_(BUILD_TYPE|EXPORT_COMPILE_COMMANDS|CXX_STANDARD|C_STANDARD)(:\w+)?=\w+|-DBUILD_[A-Z_]+=\w+|-Wno-dev",
        dangers="-P -E -C= runs a script; --install= writes elsewhere; --toolchain= loads settings; -D= may name a"
        " program; --trace-redirect --graphviz= writes a file",
    ),
    "ctest": Form(
        "-VN -j:n -R:x -E:x -L:x --output-on-failure --verbose --parallel:n --test-dir:d --rerun-failed --progress",
        "", project=True, unsure=True, dangers="-S -SP --build-and-test= runs a script; -O= writes a file",
    ),
    "ninja": Form(
        "-v -n -j:n -k:n -l:n -C:d --version --verbose --quiet", "text*", project=True, unsure=True,
        dangers="-f= loads rules; -t= runs a tool",
    ),
    "meson, bazel": Form("--version", "text*", subs=True),
    "bazel build, bazel test, bazel query": Form("--keep_going --test_output:x", "text*", project=True, unsure=True),
    "meson compile, meson test": Form("-v -C:d", "text*", project=True, unsure=True),
    "cargo": Form(
        "-qvV --version --quiet --verbose --list --offline --locked --frozen --color:x", "text*", subs=True,
        ends=True, project=True, dangers=_CARGO_DANGERS,
    ),
    ", ".join(f"cargo {sub}" for sub in _CARGO_SUBS): Form(
        _CARGO, "text*", project=True, unsure=True, dangers=_CARGO_DANGERS,
    ),
    "cargo fmt": Form(
        "-qv -p:x --all --check --quiet --package:x", "text*", project=True, unsure=True, dangers=_CARGO_DANGERS,
    ),
    "cargo clean": Form(
        "-qvn -p:x --release --doc --dry-run --package:x", "", unsure=True, project=True, dangers=_CARGO_DANGERS,
    ),
    "cargo tree, cargo metadata": Form(
        "-p:x -e:x -i:x -d --depth:n --format-version:n --no-deps --duplicates --invert:x --edges:x --all-features"
        " --features:x --locked --offline",
        "text*", project=True, dangers=_CARGO_DANGERS,
    ),
    "cargo add, cargo remove, cargo update, cargo fetch, cargo generate-lockfile": Form(
        "-qv -p:x -F:x --dev --build --features:x --no-default-features --optional --rename:x --dry-run --package:x"
        " --precise:x --locked",
        "text*", project=True, unsure=True, shape=r"[\w@.^~=-]+", dangers=_CARGO_DANGERS,
    ),
    "cargo search, cargo info": Form("--limit:n", "text*"),
    "cargo version": Form("-v", "", project=True),
    "rustc": Form(
        "-vVgO --version --print:x --edition:x --crate-type:x --test --explain:x --crate-name:x -o:w", "read?",
        unsure=True, expands=True, dangers="-C --codegen -Z --sysroot -L --extern= may run a program",
    ),
    "rustfmt": Form(
        "-qv --check --edition:x --quiet --verbose", "write*", dangers="--config --config-path= loads settings",
    ),
    "rustup": Form("-V --version", "text*", subs=True),  # it makes its settings where there are none
    "rustup show, rustup toolchain": Form("", "text?", shape="list|active-toolchain|home"),
    "go": Form("", "text*", subs=True, ends=True, project=True, dangers=_GO_DANGERS),
    "go test, go build, go vet, go install, go generate": Form(
        _GO, "text*", whole=True, project=True, unsure=True, shape=_BELOW, dangers=_GO_DANGERS,
    ),
    "go run": Form(
        "-race -v -tags:x", "text text*", whole=True, ends=True, project=True, unsure=True, check=_packages,
        dangers=_GO_DANGERS,
    ),
    "go fmt": Form("-n -x", "text*", whole=True, unsure=True, project=True),
    "go list": Form("-m -json -deps -test -e -f:x -find", "text*", whole=True, project=True, dangers=_GO_DANGERS),
    "go doc": Form("-all -short -src -u -c -cmd", "text*", whole=True, project=True),
    "go version": Form("-v", "", whole=True, project=True),
    "go env": Form("-json", "text*", whole=True, project=True, shape="[A-Z0-9]+", dangers=_GO_DANGERS),
    "go mod": Form("", "text*", subs=True, project=True),
    "go mod tidy, go mod download, go mod verify, go mod graph, go mod why, go mod vendor": Form(
        "-v -x -json", "text*", whole=True, project=True, unsure=True,
    ),
    "go get": Form("-v -t -d -u", "text*", whole=True, project=True, unsure=True, shape=r"[\w./-]+(@[\w.+-]+)?"),
    "gofmt, goimports": Form(
        "-l -d -w -s -e", "read*", whole=True, check=_gofmt,
        dangers="-r= rewrites code; -cpuprofile= writes a file",
    ),
    "golangci-lint": Form("--version", "text*", subs=True),
    "golangci-lint run": Form(
        "-v --fast --timeout:x --verbose", "read*", project=True, unsure=True,
        dangers="-c --config= loads settings",
    ),
    "gcc, g++, cc, c++, clang, clang++": Form(
        "-c -S -E -v -w -s -pthread -pedantic -shared -static -pipe -M -MM -MD -MMD -o:w -I:r -L:r -include:r"
        " -isystem:r --version -dumpversion -dumpmachine",
        "read*", whole=True, unsure=True, expands=True, also=_C_FLAGS,
        dangers="-B -wrapper -specs -fplugin -Xlinker -Xclang -Xassembler -load -fuse-ld= may run a program; -x="
        " takes files for another language",
    ),
    "javac": Form(
        "-d:w -g -cp:r -classpath:r -sourcepath:r -source:x -target:x --release:n -Werror -nowarn -deprecation"
        " -encoding:x -version -verbose",
        "read*", whole=True, unsure=True, expands=True, also="-Xlint(:[a-z,-]+)?",
        dangers="-processor -processorpath --processor-path -Xplugin -J= runs code",
    ),
    "java": Form(
        "-version --version", "", whole=True, dangers="-jar -cp -classpath -javaagent -agentpath= runs code",
    ),
    "mvn": Form(
        "-q -B -o -e -X -U -T:x -pl:x -am --quiet --batch-mode --offline --errors --fail-fast"
        " --no-transfer-progress -ntp -v --version",
        "text*", whole=True, project=True, unsure=True,
        also=r"-D(skipTests|skipITs|maven\.test\.skip|test|it\.test|failIfNoTests|surefire\.failIfNoSpecifiedTests)(=[\w.#*,$-]+)?",
        shape="clean|validate|compile|test|test-compile|package|verify|dependency:tree|spotless:(check|apply)|help:effective-pom|install",
        dangers="-f --file -s --settings -gs -t --toolchains= loads settings; -D -P= changes settings; -l"
        " --log-file= writes a file",
    ),
    "gradle": Form(
        "-qidmv -x:x --quiet --info --debug --dry-run --stacktrace --no-daemon --daemon --parallel --continue"
        " --offline --rerun-tasks --tests:x --console:x --build-cache --no-build-cache --version --warning-mode:x",
        "text*", project=True, unsure=True, shape=r"[\w:.-]+",
        dangers="-I --init-script -b --build-file -c --settings-file -p --project-dir -g --gradle-user-home"
        " --include-build= loads rules; -P -D= changes settings",
    ),
    "swift": Form("", "text*", subs=True),
    "swift build, swift test": Form("-v -c:x --filter:x --parallel", "", project=True, unsure=True),
    "dotnet": Form("--version --info", "text*", subs=True),
    "dotnet build, dotnet test, dotnet restore, dotnet format": Form(
        "-v:x -c:x --no-restore --no-build --configuration:x --filter:x --verbosity:x", "read?", project=True,
        unsure=True,
    ),
    "bundle": Form("--version", "text*", subs=True),
    "bundle exec": Form("", "text*", ends=True, leads=True, project=True),
    "bundle install, bundle check, bundle list": Form("--quiet", "", project=True, unsure=True),
    "mix": Form("--version", "text*", subs=True),
    "rspec, rubocop, phpunit, mix test, mix format": Form(
        "-a -A --autocorrect --fail-fast --format:=progress|documentation|simple", "read*", project=True,
        unsure=True, dangers="-r --require -I --options -c --config= loads code; -o --out= writes a file",
    ),
    "ruby, perl, php, lua, Rscript": Form(
        "-cwv --version", "read text*", ends=True, project=True, unsure=True,
        dangers="-e -E -r -R -n -p= runs the code that it is given; -i= writes the files; -I -M -m -d -S= loads"
        " code",
    ),
}  # fmt: skip
