"""The rows of compilers, build tools, Node and Python."""

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

_BUILD: Mapping[str, Form] = {
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


_SCRIPT_SHELL = (
    "--script-shell --shell= runs a program; --prefix -C --dir --cwd= takes another project; --node-options= runs"
    " code; --userconfig --globalconfig= loads settings; --registry= takes packages from elsewhere; -c --call= runs"
    " a command; -g --global --location= changes the machine; --git= runs a program; --editor --viewer= runs a"
    " program; --node-linker= changes how it runs"
)
_QUIET = " -s -q --silent --quiet --loglevel:x --no-color --color"
_NPM = _QUIET + (" -w:x --workspace:x --workspaces --if-present --ignore-scripts --include-workspace-root")
_INSTALL = _NPM + (
    " -D -E -O -P -f --save --save-dev --save-exact --save-optional --save-peer --no-save --production --omit:x"
    " --include:x --legacy-peer-deps --prefer-offline --offline --no-audit --no-fund --audit --force"
    " --package-lock-only --dry-run --frozen-lockfile --no-frozen-lockfile --immutable --dev --exact --recursive -r"
    " --lockfile-only --no-optional --ignore-scripts"
)
_NAME = r"(?:@[A-Za-z0-9_~][\w.~-]*/)?[A-Za-z0-9_~][\w.~-]*(?:@[\^~]?[\w.*-]+)?"
"""A package by its name: a path, an address or an alias would be taken from elsewhere."""


def _check_node_script(given: CommandArguments) -> ArgumentAnalysis:
    if given.has("-v", "--version", "--test") and not any(word.text == "-" for word in given.operands):
        return ArgumentAnalysis()
    if not given.operands or given.operands[0].text == "-":
        return ArgumentAnalysis("an interpreter without a script runs whatever it reads")
    return ArgumentAnalysis()


def _writer_form(*flags: str) -> Form:
    """A checker that writes what it is given where one of the flags says so."""

    def check(given: CommandArguments) -> ArgumentAnalysis:
        files = tuple(word.text for word in given.operands if word.known) or (".",)
        return ArgumentAnalysis(writes=files if given.has(*flags) else ())

    return Form(operands="read*", here=True, deep=True, project=True, check=check)


def _tests(given: CommandArguments) -> ArgumentAnalysis:
    """What is handed to tests names more tests and settings: those that lead out of the workspace are told."""
    words = [word.text.rpartition("=")[2] for word in given.operands if word.known]
    words += [value.text for value in given.values("-w", "--workspace") if value.known]
    return ArgumentAnalysis(reads=tuple(word for word in words if re.match(r"/|~|\.\.(?:/|$)|.*/\.\.(?:/|$)", word)))


def _task(given: CommandArguments) -> ArgumentAnalysis:
    first = given.operands[0].text if given.operands else ""
    return _tests(given) if re.match(r"t(?:ests?)?(?:\W|$)", first) else ArgumentAnalysis()


_RUN = Form(_NPM, "text text*", project=True, unsure=True, check=_task, dangers=_SCRIPT_SHELL)

_NODE: Mapping[str, Form] = {
    "bun, deno": Form("--version -v", "text*", subs=True, ends=True, project=True),
    "deno test, deno lint, deno check, deno run": Form(
        "--quiet -q", "read text*", ends=True, project=True, unsure=True,
    ),
    "node, nodejs": Form(
        "-vc --version --check --test --test-name-pattern:x --test-only --watch --no-warnings --trace-warnings"
        " --enable-source-maps --max-old-space-size:n --experimental-strip-types --test-reporter:=spec|tap|dot",
        "read text*", ends=True, project=True, unsure=True, check=_check_node_script,
        dangers="-e --eval -p --print= runs the code that it is given; -r --require --import --loader"
        " --experimental-loader= loads code; -i --interactive= reads more code; --env-file= loads a file; --inspect"
        " --inspect-brk= opens the network; -C --conditions= changes how it runs",
    ),
    "npm": Form("--version -v --silent -s", "text*", subs=True, ends=True, dangers=_SCRIPT_SHELL),
    "npm test, npm t, npm start, npm stop, npm restart, pnpm test, pnpm t, pnpm start, yarn test, yarn start, yarn"
    " build, yarn lint, pnpm build, pnpm lint, yarn dev, pnpm dev, bun test": _RUN._replace(
        operands="text*", check=_tests,
    ),
    "npm run, npm run-script, pnpm run, yarn run, bun run": _RUN,
    "npm ls, npm list, npm ll, npm la, npm outdated, npm explain, npm why, pnpm list, pnpm ls, pnpm why, pnpm"
    " outdated, yarn list, yarn why, yarn info, yarn outdated": Form(
        "-al --all --long --json --depth:n --parseable --prod --dev --omit:x --include:x --link -r --recursive"
        " --pattern:x",
        "text*", dangers=_SCRIPT_SHELL,
    ),
    "npm view, npm info, npm show, npm search, npm audit, npm fund, npm doctor, npm ping, npm whoami, pnpm audit,"
    " yarn audit": Form("--json --omit:x --audit-level:x --production --prod", "text*", dangers=_SCRIPT_SHELL),
    "npm install, npm i, npm ci, npm add, npm update, npm dedupe, npm prune, npm rebuild, pnpm install, pnpm i,"
    " pnpm add, pnpm update, yarn install, yarn add, yarn upgrade, bun install, bun add": Form(
        _INSTALL, "text*", project=True, unsure=True, shape=_NAME, dangers=_SCRIPT_SHELL,
    ),
    "npm uninstall, npm remove, npm rm, pnpm remove, yarn remove, bun remove": Form(
        _INSTALL, "text*", project=True, unsure=True, shape=_NAME, dangers=_SCRIPT_SHELL,
    ),
    "npm pack": Form("--dry-run --json", "", project=True, unsure=True, dangers=_SCRIPT_SHELL),
    "npm version": Form(
        "--no-git-tag-version --allow-same-version -m:x", "text?", project=True, unsure=True,
        dangers=_SCRIPT_SHELL,
    ),
    "npm root, npm bin, npm prefix": Form("", ""),
    "pnpm": Form(
        "--version -v -r --recursive --filter:x --silent -s", "text*", subs=True, ends=True, dangers=_SCRIPT_SHELL,
    ),
    "yarn": Form("--version -v --silent -s", "text*", subs=True, ends=True, project=True, dangers=_SCRIPT_SHELL),
    "npx": Form(
        "--no-install --no --offline --prefer-offline -q --quiet", "text*", ends=True, leads=True, project=True,
        dangers="-c --call --shell --script-shell= runs a command; -p --package -y --yes= takes packages from"
        " elsewhere",
    ),
    "npm exec, pnpm exec, yarn exec, yarn dlx, pnpm dlx, bunx, bun x": Form(
        "", "text*", ends=True, leads=True, project=True, dangers=_SCRIPT_SHELL,
    ),
    "corepack": Form("--version", "text*", subs=True),
    "tsc, vue-tsc": Form(
        "-v -b -w --noEmit --pretty --watch --strict --skipLibCheck --version --showConfig --listFiles --build"
        " --incremental --esModuleInterop --target:x --module:x --moduleResolution:x --lib:x --jsx:x"
        " --noImplicitAny --diagnostics --extendedDiagnostics --traceResolution --force --dry -p:r --project:r",
        "read*", project=True, unsure=True, here=True, whole=True, expands=True,
        dangers="--outDir --outFile --declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile= writes"
        " elsewhere; --init= writes settings; --plugins= runs code",
    ),
    "eslint": _writer_form("--fix")._replace(
        flags="--fix --fix-dry-run --quiet --max-warnings:n --ext:x --no-error-on-unmatched-pattern"
        " --report-unused-disable-directives --cache --no-cache --rule:x --env:x --ignore-pattern:x --no-ignore"
        " --color --no-color --format:=stylish|json|compact|unix --version --debug --no-inline-config",
        dangers="-c --config --rulesdir --plugin --parser --resolve-plugins-relative-to= loads code; -f= loads"
        " code; -o --output-file --cache-location= writes a file; --init= runs a program",
    ),
    "prettier": _writer_form("-w", "--write")._replace(
        flags="-clwu --check --list-different --write --no-config --ignore-unknown --log-level:x --loglevel:x"
        " --no-color --tab-width:n --print-width:n --single-quote --no-semi --trailing-comma:x --parser:x --version"
        " --no-error-on-unmatched-pattern --end-of-line:x --prose-wrap:x",
        dangers="--config --plugin --ignore-path --config-precedence --plugin-search-dir= loads settings;"
        " --cache-location= writes a file",
    ),
    "biome": Form("--version", "text*", subs=True),
    "biome check, biome lint, biome format": _writer_form("--write", "--apply", "--fix")._replace(
        flags="--write --apply --fix --version --max-diagnostics:n",
    ),
    "jest": Form(
        "-ibuo -w:x -t:x --ci --runInBand --watchAll:x --watch:x --testNamePattern:x --coverage --verbose --silent"
        " --passWithNoTests --bail? --maxWorkers:x --updateSnapshot --onlyChanged --findRelatedTests"
        " --testPathPattern:x --testPathPatterns:x --listTests --no-cache --detectOpenHandles --forceExit --json"
        " --colors --no-coverage --testTimeout:n --selectProjects:x --version --clearCache --changedSince:x",
        "read*", project=True, unsure=True,
        dangers="-c --config --globals --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv"
        " --testRunner --runner --transform --resolver --reporters --preset --testEnvironment --rootDir --env="
        " loads code; --outputFile --coverageDirectory --cacheDirectory= writes a file",
    ),
    "vitest": Form(
        "-uv -t:x --run --watch:x --reporter:=default|verbose|dot|json|tap|basic --coverage --passWithNoTests"
        " --bail:n --testNamePattern:x --changed? --silent --no-color --update --version --testTimeout:n"
        " --project:x --no-coverage --hideSkippedTests --retry:n --maxWorkers:x",
        "read*", project=True, unsure=True,
        dangers="-c --config -r --root --dir --globalSetup --environment --pool --api --ui --browser= loads code;"
        " --outputFile= writes a file",
    ),
    "mocha, ava, playwright test, cypress run": Form(
        "-b -g:x --grep:x --bail --reporter:=spec|dot|list|line --project:x --headed", "read*", project=True,
        unsure=True, dangers="-r --require --config -c --file --import= loads code",
    ),
    "playwright, cypress": Form("--version", "text*", subs=True),
}  # fmt: skip


_PYTEST = (
    r"-vqxslh -k:x -m:x -n:=\d+|auto|logical -r? --lf --ff --nf --sw --co --exitfirst --last-failed --failed-first"
    " --new-first --stepwise --stepwise-skip --collect-only --tb:=auto|long|short|line|native|no --maxfail:n"
    " --durations:n --durations-min:x --no-header --no-summary --verbose --quiet --capture:=no|sys|fd|tee-sys"
    " --showlocals --full-trace --color:=yes|no|auto --strict-markers --strict-config --disable-warnings --cov?"
    " --no-cov --cov-report:=term|term-missing|term-missing:skip-covered| --cov-branch --cov-fail-under:n"
    r" --timeout:n --reruns:n --dist:x --numprocesses:=\d+|auto|logical --markers --fixtures --setup-show"
    " --setup-only --runxfail --cache-show --cache-clear --randomly-seed:x --asyncio-mode:x --benchmark-skip"
    " --benchmark-only --deselect:x --ignore:r --ignore-glob:x --import-mode:x --snapshot-update"
)
_RUFF = (
    " -qsve --quiet --silent --verbose --exit-zero --select:x --ignore:x --extend-select:x --fixable:x"
    " --unfixable:x --line-length:n --target-version:x --output-format:x --statistics --show-files --show-settings"
    " --preview --no-preview --exclude:x --respect-gitignore --force-exclude --no-cache -n --diff --watch"
    " --isolated --show-fixes --per-file-ignores:x"
)
_PIP = (
    "-qvU -r:r -e:r -c:r --quiet --verbose --upgrade --requirement:r --editable:r --constraint:r --user --no-deps"
    " --pre --no-cache-dir --no-input --force-reinstall --disable-pip-version-check --break-system-packages"
    " --dry-run --no-build-isolation --only-binary:x --no-binary:x --upgrade-strategy:x --prefer-binary"
    " --ignore-installed --no-warn-script-location"
)
_PIP_DANGERS = (
    "-i --index-url --extra-index-url -f --find-links --trusted-host --proxy --cert= takes packages from elsewhere;"
    " -t --target --root --prefix --src --log= writes elsewhere; --python= runs a program; --config-settings"
    " --global-option --build-option= changes how code is built"
)
_PIP_LIST = (
    "!-o -vl !--outdated !--uptodate --editable --local --user --format:x --not-required --verbose --all"
    " --disable-pip-version-check"
)


_PACKAGE = (
    r"\.(?:/(?!\S*\.\.)[\w./-]*)?(?:\[[\w,-]+\])?|[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?(?: ?(?:[=~!<>]=|[<>])"
    r" ?[\w.*+]+,?)*"
)
"""A package by its name and version, or a folder below this one: an address would be code from elsewhere."""


def _check_python_script(given: CommandArguments) -> ArgumentAnalysis:
    if given.has("-V", "--version") and not given.operands:
        return ArgumentAnalysis()
    if not given.operands or given.operands[0].text == "-":
        return ArgumentAnalysis("an interpreter without a script runs whatever it reads")
    return ArgumentAnalysis()


def _writes_unless(*flags: str) -> Form:
    """A formatter: what it is given is written, unless a flag says otherwise."""

    def check(given: CommandArguments) -> ArgumentAnalysis:
        files = tuple(word.text for word in given.operands if word.known and word.text != "-") or (".",)
        return ArgumentAnalysis(writes=() if given.has(*flags) else files)

    return Form(operands="read*", here=True, deep=True, check=check)


def _fixes(given: CommandArguments) -> ArgumentAnalysis:
    files = tuple(word.text for word in given.operands if word.known and word.text != "-") or (".",)
    return ArgumentAnalysis(writes=files if given.has("--fix", "--fix-only", "--unsafe-fixes", "--add-noqa") else ())


_TOOL = Form(operands="read*", here=True, deep=True, project=True)

_PYTHON: Mapping[str, Form] = {
    "python, python3": Form(
        "-uBEsSIqbdOvV -W:x -X:x --version", "read text*", ends=True, project=True, unsure=True,
        check=_check_python_script,
        dangers="-c= runs the code that it is given; -i= reads more code; -m= runs a module",
    ),
    "python -m unittest": Form(
        "-vqfbc -k:x -s:r -p:x -t:r --verbose --quiet --failfast --buffer --catch --locals --durations:n", "read*",
        project=True, unsure=True,
    ),
    "python -m py_compile, python -m compileall": Form("-qf", "read*", unsure=True),
    "python -m json.tool": Form(
        "--sort-keys --indent:n --tab --compact --no-ensure-ascii --json-lines --no-indent", "read write?",
    ),
    "python -m venv": Form(
        "--clear --upgrade --without-pip --system-site-packages --upgrade-deps --copies --symlinks --prompt:x",
        "write*", unsure=True,
    ),
    "python -m http.server": Form(
        r"-b:=127\.0\.0\.1|localhost --bind:=127\.0\.0\.1|localhost -d:d --directory:d", "text?", shape=r"\d+",
    ),
    "python -m timeit, python -m pdb, python -m cProfile": Form("", "", dangers="-s= runs code"),
    "pip, pip3": Form(
        "--version -V --disable-pip-version-check", "text*", subs=True, ends=True, harmless=True,
        dangers=_PIP_DANGERS,
    ),
    "pip list, pip3 list, pip freeze, pip3 freeze": Form(_PIP_LIST, harmless=True, dangers=_PIP_DANGERS),
    "pip show, pip3 show": Form("-fv --files --verbose", "text*", harmless=True),
    "pip check, pip3 check": Form("", harmless=True),
    "pip install, pip3 install, pip download, pip wheel": Form(
        _PIP, "text*", project=True, unsure=True, dangers=_PIP_DANGERS, shape=_PACKAGE,
    ),
    "pip uninstall, pip3 uninstall": Form("-y -r:r --yes --requirement:r", "text*", unsure=True),
    "uv": Form(
        "-qv --quiet --verbose --version --offline --no-progress", "text*", subs=True, ends=True,
        dangers="--project --directory --config-file= takes another project; --python -p= runs a program",
    ),
    "uv run": Form(
        "-qv --frozen --locked --no-sync --all-extras --all-groups --no-dev --dev --isolated --extra:x --group:x"
        " --offline --only-group:x",
        "text*", ends=True, leads=True, project=True,
        dangers="--with --with-requirements --with-editable= takes packages from elsewhere; -m --module= runs a"
        " module; --env-file= loads a file; --script -s= runs a script; -p --python= runs a program",
    ),
    "uv sync, uv lock": Form(
        "-qv --frozen --locked --all-extras --all-groups --no-dev --dev --extra:x --group:x --upgrade --check"
        " --offline --no-install-project",
        "", project=True, unsure=True,
    ),
    "uv add, uv remove": Form(
        "-qv --dev --group:x --optional:x --no-sync --frozen", "text*", project=True, unsure=True,
        shape=r"[A-Za-z0-9_.\[\],=<>~!]+",
    ),
    "uv tree": Form("--frozen --depth:n --no-dev --outdated --invert --package:x", "", unsure=True),
    "uv venv": Form("--seed --clear", "write?", unsure=True),
    "uv build": Form("--wheel --sdist", "", project=True, unsure=True),
    "uv pip": Form("", "text*", subs=True),
    "uv pip list, uv pip freeze, uv pip show, uv pip check, uv pip tree": Form("--format:x --outdated", "text*"),
    "uv pip install, uv pip sync": Form(
        _PIP, "text*", project=True, unsure=True, dangers=_PIP_DANGERS, shape=_PACKAGE,
    ),
    "uvx, pipx": Form("", "text*", ends=True, leads=True, project=True),
    "poetry, pdm, hatch": Form("-qv --quiet --verbose --version -n --no-interaction", "text*", subs=True, ends=True),
    "poetry run, pdm run, hatch run": Form("", "text*", ends=True, leads=True, project=True),
    "poetry install, poetry lock, poetry update, poetry build, poetry check, pdm install, pdm sync": Form(
        "-n --no-interaction --no-root --sync --all-extras --with:x --without:x --only:x --extras:x --dry-run",
        "text*", project=True, unsure=True,
    ),
    "poetry show, poetry version": Form("-tlo --tree --latest --outdated", "text*"),
    "ruff": Form("--version -V", "text*", subs=True, harmless=True),
    "ruff check": Form(
        _RUFF + " --fix --no-fix --fix-only --unsafe-fixes --no-unsafe-fixes", "read*", here=True, deep=True,
        expands=True, check=_fixes,
        dangers="--config= loads settings; -o --output-file --cache-dir= writes a file; --stdin-filename= takes a"
        " name; --add-noqa= writes the files",
    ),
    "ruff format": _writes_unless("--check", "--diff")._replace(
        flags=_RUFF + " --check --range:x", dangers="--config= loads settings; --cache-dir= writes a file",
    ),
    "ruff rule, ruff version, ruff linter, ruff config": Form("--all --output-format:x", "text?", harmless=True),
    "black": _writes_unless("--check", "--diff")._replace(
        flags="-qvSC -l:n -t:x --check --diff --color --no-color --quiet --verbose --line-length:n"
        " --target-version:x --fast --safe --skip-string-normalization --preview --exclude:x --extend-exclude:x"
        " --include:x --force-exclude:x --workers:n",
        dangers="--config= loads settings; -c --code= is no file",
    ),
    "isort": _writes_unless("--check", "--check-only", "-c", "--diff", "-d")._replace(
        flags="-cdqv -l:n --check --check-only --diff --quiet --verbose --profile:x --line-length:n --atomic"
        " --float-to-top --skip:x --skip-glob:x",
        dangers="--settings-path --settings-file --sp= loads settings",
    ),
    "mypy": _TOOL._replace(
        expands=True,
        flags="-v -p:x -m:x --strict --pretty --no-incremental --ignore-missing-imports --show-error-codes"
        " --show-error-context --python-version:x --platform:x --explicit-package-bases --namespace-packages"
        " --check-untyped-defs --disallow-untyped-defs --warn-unused-ignores --warn-unreachable --no-color-output"
        " --color-output --no-error-summary --exclude:x --package:x --module:x --follow-imports:x"
        " --disable-error-code:x --enable-error-code:x --show-column-numbers --hide-error-context --warn-return-any"
        " --no-site-packages --version -V --allow-redefinition --scripts-are-modules --verbose",
        dangers="-c --command= is no file; --config-file= loads settings; --python-executable= runs a program;"
        " --cache-dir --junit-xml --html-report --txt-report --xml-report= writes a file; --install-types= installs"
        " packages",
    ),
    "ty": Form("--version", "text*", subs=True),
    "pyright, basedpyright, pyre, ty check": _TOOL._replace(
        flags="--warnings --stats --outputjson --verbose --version --pythonversion:x --pythonplatform:x --level:x"
        " --skipunannotated --threads:n",
        dangers="-p --project= loads settings; --pythonpath --venvpath= takes another Python; --createstub"
        " --writebaseline= writes a file",
    ),
    "flake8, pylint, pycodestyle, pydocstyle, bandit, vulture": _TOOL._replace(
        flags="-q -v -r -j:n --count --statistics --show-source --select:x --ignore:x --extend-ignore:x"
        " --max-line-length:n --max-complexity:n --exclude:x --disable:x --enable:x --errors-only -E --score:x"
        " --exit-zero --recursive:x --min-confidence:n --jobs:n",
        dangers="--config --rcfile --append-config= loads settings; --output-file --tee -o= writes a file;"
        " --load-plugins --init-hook= runs code",
    ),
    "pytest, py.test": Form(
        _PYTEST, "read*", project=True, unsure=True, expands=True,
        dangers="-p= loads code; -c --rootdir --confcutdir -o --override-ini --config-file= loads settings;"
        " --basetemp= deletes that folder; --junitxml --junit-xml --result-log --log-file --html --cov-config"
        " --report-log= writes a file; --pdb --trace --pdbcls= waits for a person; --pastebin= sends the result",
    ),
    "coverage": Form("--version", "text*", subs=True),
    "coverage run": Form(
        "-ap --branch --append --source:x --parallel-mode --module", "read text*", ends=True, project=True,
        dangers="-m= runs a module; --rcfile= loads settings; --data-file= writes a file",
    ),
    "coverage report": Form(
        "-mi --show-missing --skip-covered --skip-empty --include:x --omit:x --fail-under:n --precision:n --sort:x",
        "read*", unsure=True, dangers="--rcfile= loads settings",
    ),
    "coverage combine, coverage erase": Form("-aq --append --keep", "read*", unsure=True),
    "tox, nox": Form(
        "-lqvra -p? -e:x -s:x -m:x --recreate --listenvs --parallel? --quiet --verbose -k:x --list --session:x"
        " --sessions:x --reuse-existing-virtualenvs -R",
        "text*", project=True, unsure=True,
        dangers="-c --conf -f --noxfile --workdir --root -x --override= loads settings; --installpkg= takes a"
        " package",
    ),
    "pre-commit": Form("--version -V", "text*", subs=True),
    "pre-commit run": Form(
        "-av --all-files --files:r --verbose --show-diff-on-failure --color:x --from-ref:x --to-ref:x"
        " --hook-stage:x",
        "text*", project=True, unsure=True, dangers="-c --config= loads settings",
    ),
    "pre-commit install, pre-commit autoupdate, pre-commit clean, pre-commit validate-config": Form(
        "", "", project=True, unsure=True,
    ),
}  # fmt: skip

ROWS: Mapping[str, Form] = {**_BUILD, **_NODE, **_PYTHON}
