"""Rows of Python, its package tools, and the linters and test runners that are written in it."""

from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

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


def _script(given: CommandArguments) -> ArgumentAnalysis:
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

ROWS: Mapping[str, Form] = {
    "python, python3": Form(
        "-uBEsSIqbdOvV -W:x -X:x --version", "read text*", ends=True, project=True, unsure=True, check=_script,
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
