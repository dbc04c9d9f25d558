"""What can be seen of private places all the same, and that the whole machine is no folder: in every sandbox."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule.sandbox import Profile, SandboxError
from ferrule.sandbox.bubblewrap import Bubblewrap
from ferrule.sandbox.landlock import Landlock, Namespaces
from ferrule.sandbox.placeholders import layout
from ferrule.sandbox.seatbelt import Seatbelt

from .attempts import LIMIT_SECONDS, SECRET, Ran, World, confined, world

WAYS = [
    pytest.param(
        sandbox,
        id=sandbox.name,
        marks=pytest.mark.skipif(bool(why), reason=f"NOT TESTED HERE, {sandbox.name} does not confine: {why}"),
    )
    for sandbox in (Bubblewrap(), Namespaces())
    for why in [sandbox.works()]
]
"""Those that have private places; what the others do is tested below, and the mounts of bubblewrap without it."""
every_way = pytest.mark.parametrize("sandbox", WAYS)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture(params=["/tmp", "/var/tmp"])
def private(request) -> Iterator[Path]:
    """A folder in a private place, with a program in it, a secret, and a folder to write in."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(dir=request.param)))
    try:
        for name in ("tools/bin", "tools/keys", "tools/work", "hidden"):
            (folder / name).mkdir(parents=True)
        (folder / "tools/bin/hello").write_text("#!/bin/sh\necho hello\n")
        (folder / "tools/bin/hello").chmod(0o755)
        for name in ("tools/.env", "tools/keys/id", "hidden/text"):
            (folder / name).write_text(SECRET)
        yield folder
    finally:
        shutil.rmtree(folder)


def run(sandbox: Bubblewrap | Namespaces, there: World, script: str, profile: Profile) -> Ran:
    if isinstance(sandbox, Namespaces):
        return confined(sandbox, there, script, profile)
    wrapped = sandbox.wrap(("/bin/bash", "-c", script), profile, cwd=str(there.workspace))
    try:
        done = subprocess.run(
            wrapped.argv,
            env={**there.env(), **wrapped.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=wrapped.descriptors,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    finally:
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        wrapped.done()
    return Ran(done.returncode, done.stdout.decode(errors="replace"))


@every_way
def test_what_is_shown_can_be_run_and_not_be_written_and_the_rest_stays_hidden(sandbox, private, there):
    tools = private / "tools"
    script = f"{tools}/bin/hello; echo x > {tools}/bin/new; echo x > {tools}/bin/hello; cat {private}/hidden/text"

    ran = run(sandbox, there, script, there.profile(shown=(f"{tools}/bin", f"{private}/absent")))

    assert ran.output.startswith("hello\n")
    assert SECRET not in ran.output
    assert os.listdir(tools / "bin") == ["hello"]
    assert (tools / "bin/hello").read_text().endswith("echo hello\n")
    assert SECRET not in run(sandbox, there, f"{tools}/bin/hello", there.profile()).output


@every_way
def test_what_is_masked_stays_so_wherever_it_is_shown(sandbox, private, there):
    tools = private / "tools"
    (private / "link").symlink_to("tools")
    masked = tuple(str(tools / name) for name in (".env", "keys"))
    script = f"cat {tools}/.env {tools}/keys/id {private}/link/.env {private}/link/keys/id; {tools}/bin/hello"

    ran = run(sandbox, there, script, there.profile(shown=(str(tools), f"{private}/link"), masked=masked))
    assert ran.output.endswith("hello\n")
    assert SECRET not in ran.output

    for shown in (str(tools / "keys"), f"{private}/link/keys"):
        for mask in (str(tools), str(tools / "keys")):
            script = f"cat {tools}/keys/id {private}/link/keys/id"
            ran = run(sandbox, there, script, there.profile(shown=(shown,), masked=(mask,)))
            assert ran.code != 0
            assert SECRET not in ran.output


@every_way
def test_a_writable_folder_in_a_shown_one_stays_writable_and_the_other_way_round(sandbox, private, there):
    tools = private / "tools"
    writable = (str(there.workspace), str(tools / "work"))
    script = f"echo x > {tools}/work/a; echo x > {tools}/bin/a; {tools}/bin/hello"
    run(sandbox, there, script, there.profile(writable=writable, shown=(str(tools),)))
    assert (os.listdir(tools / "work"), os.listdir(tools / "bin")) == (["a"], ["hello"])

    writable = (str(there.workspace), str(tools))
    run(sandbox, there, f"echo x > {tools}/bin/b", there.profile(writable=writable, shown=(str(tools / "bin"),)))
    assert sorted(os.listdir(tools / "bin")) == ["b", "hello"]


@every_way
def test_a_private_place_as_a_whole_is_never_shown(sandbox, private, there):
    profile = there.profile(shown=("/", "/tmp", "/var", "/var/tmp", "/run"))

    assert SECRET not in run(sandbox, there, f"cat {private}/hidden/text", profile).output


@every_way
def test_what_a_masked_link_leads_to_is_masked(sandbox, there):
    (there.workspace / "src/plain").write_text(SECRET)
    (there.workspace / "link").symlink_to("src/plain")
    profile = there.profile(masked=(str(there.workspace / "link"),))

    ran = run(sandbox, there, "cat src/plain link; mv src moved; cat moved/plain; echo over", profile)

    assert ran.output.endswith("over\n")
    assert SECRET not in ran.output
    assert (there.workspace / "src/plain").exists()


@every_way
@pytest.mark.parametrize("target", ["/", "/dev/null", "{workspace}", "/proc/self/root"])
def test_a_masked_link_to_what_cannot_be_hidden_takes_no_other_mask_off(sandbox, target, there):
    """A command may have left it there, under the name of a secret."""
    (there.workspace / "link").symlink_to(target.format(workspace=there.workspace))
    usual = there.profile()

    ran = run(
        sandbox,
        there,
        "cat $OUT/secret $OUT/vault/key; echo x > /dev/null; echo x > src/new && echo over",
        usual._replace(masked=(*usual.masked, str(there.workspace / "link"))),
    )

    assert ran.output.endswith("over\n")
    assert SECRET not in ran.output


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
@pytest.mark.parametrize("target", ["/run/.host{outside}", "{outside}"])
def test_a_link_that_a_command_leaves_in_the_way_leads_nowhere(target, private, there):
    """The next command's folder would be made at its end, as seen by who has the rights to."""
    profile = there.profile(shown=(f"{private}/tools/bin",))
    to = target.format(outside=there.outside)
    ran = run(Namespaces(), there, f"mv {private} {private}-old; ln -s {to} {private}; readlink {private}", profile)
    assert ran == (0, f"{to}\n")

    with pytest.raises(OSError, match=r"[Dd]irectory"):
        run(Namespaces(), there, "true", profile)
    assert not (there.outside / "tools").exists()
    assert run(Namespaces(), there, f"rm {private}", there.profile()).code == 0
    assert run(Namespaces(), there, f"{private}/tools/bin/hello", profile) == (0, "hello\n")


def test_the_mounts_of_what_is_shown_are_read_only(private):
    tools = private / "tools"
    profile = Profile(
        writable=(str(tools / "work"),),
        masked=(str(tools / "keys"), str(private / "hidden/text")),
        shown=(str(tools), str(tools / "work"), str(tools / "keys"), "/usr", str(private.parent)),
    )

    assert [
        (os.path.relpath(path, tools), kind) for path, kind, _ in layout(profile, private=[str(private.parent)])
    ] == [
        (".", "read-only"),
        ("keys", "empty"),
        ("work", "bind"),
    ]


@pytest.mark.parametrize("sandbox", [Bubblewrap(), Namespaces(), Landlock(), Seatbelt()], ids=lambda one: one.name)
def test_the_whole_machine_is_no_folder_to_write_in_and_that_is_the_reason_given(sandbox, tmp_path):
    with pytest.raises(SandboxError, match="whole machine"):
        sandbox.wrap(("true",), Profile(writable=(str(tmp_path), "/")), cwd=str(tmp_path))


@pytest.mark.parametrize("sandbox", [Bubblewrap(), Namespaces()], ids=lambda one: one.name)
def test_that_a_replaced_file_loses_its_protection_is_said(sandbox):
    assert any("another program" in text and "replaces" in text for text in sandbox.lacks)
