"""Rows of node, its package tools, and the checkers and test runners that are written for it."""

import re
from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

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


def _script(given: CommandArguments) -> ArgumentAnalysis:
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

ROWS: Mapping[str, Form] = {
    "bun, deno": Form("--version -v", "text*", subs=True, ends=True, project=True),
    "deno test, deno lint, deno check, deno run": Form(
        "--quiet -q", "read text*", ends=True, project=True, unsure=True,
    ),
    "node, nodejs": Form(
        "-vc --version --check --test --test-name-pattern:x --test-only --watch --no-warnings --trace-warnings"
        " --enable-source-maps --max-old-space-size:n --experimental-strip-types --test-reporter:=spec|tap|dot",
        "read text*", ends=True, project=True, unsure=True, check=_script,
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
