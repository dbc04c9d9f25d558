"""Starting a process whose output and errors come on pipes that can be stopped: who writes too much has to wait."""

import os
from collections.abc import Mapping, Sequence
from subprocess import Popen

from ferrule.support.signals import let_children_heed
from ferrule.support.starter import Started, Starter


class Piping:
    """A starter that gives a process pipes of its own in place of those it is told, whoever else starts it."""

    def __init__(self, inner: Starter | None = None) -> None:
        """`inner` does the starting; without one the process starts as any program does."""
        self.output = self.errors = -1
        """Our ends of the pipes, once it was started. Whoever started it owns them."""
        self._inner = inner

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,  # noqa: ARG002 - nobody writes there
        stderr: int,  # noqa: ARG002 - nor there
        descriptors: Sequence[int] = (),
    ) -> Started:
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for _ in range(2):
                reading, writing = os.pipe()
                ours.append(reading)
                theirs.append(writing)
            process = self._begin(argv, cwd, env, (stdin, *theirs), descriptors)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.output, self.errors = ours
        return process

    def _begin(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        three: tuple[int, ...],
        descriptors: Sequence[int],
    ) -> Started:
        stdin, output, errors = three
        if self._inner is not None:
            return self._inner.start(
                argv, cwd=cwd, env=env, stdin=stdin, stdout=output, stderr=errors, descriptors=descriptors
            )
        let_children_heed()
        return Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            pass_fds=descriptors,
        )
