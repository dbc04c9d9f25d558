"""The filter of system calls: what it decides for each machine, by an interpreter of the same small language."""

import errno
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox import kernel

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
SOCKET, SOCKETPAIR = {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199}
CLONE, UNSHARE = {"x86_64": 56, "aarch64": 220}, {"x86_64": 272, "aarch64": 97}
IOCTL, PERSONALITY = {"x86_64": 16, "aarch64": 29}, {"x86_64": 135, "aarch64": 92}
PTRACE, MOUNT = {"x86_64": 101, "aarch64": 117}, {"x86_64": 165, "aarch64": 40}
READ, OPENAT = {"x86_64": 0, "aarch64": 63}, {"x86_64": 257, "aarch64": 56}
EVERYWHERE = {"fsopen": 430, "move_mount": 429, "open_tree": 428, "mount_setattr": 442, "pidfd_getfd": 438}

machines = pytest.mark.parametrize("machine", ARCHITECTURES)


def decided(program: bytes, number: int, args: tuple[int, ...] = (), *, architecture: int) -> int:
    """Run a program as the kernel would, with its checks: jumps go forward and stay inside, the end is a return."""
    steps = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *(*args, *(6 - len(args)) * (0,)))
    at = register = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (register,) = struct.unpack_from("=I", data, value)
            case 0x54:
                register &= value
            case 0x06:
                return int(value)
            case 0x15 | 0x25 | 0x35 | 0x45:
                true = {
                    0x15: register == value,
                    0x25: register > value,
                    0x35: register >= value,
                    0x45: bool(register & value),
                }
                at += then if true[code] else otherwise
            case _:
                raise AssertionError(hex(code))


def judged(machine: str, number: int, *args: int, network: bool = False, unix_sockets: bool = False) -> int:
    program = kernel.program(network=network, unix_sockets=unix_sockets, machine=machine)
    return decided(program, number, args, architecture=ARCHITECTURES[machine])


@machines
@pytest.mark.parametrize(
    ("numbers", "args", "open_to", "verdict"),
    [
        pytest.param(READ, (), {}, ALLOW, id="read"),
        pytest.param(OPENAT, (), {}, ALLOW, id="open"),
        pytest.param(SOCKET, (2, 1), {}, EPERM, id="inet"),
        pytest.param(SOCKET, (10, 2), {}, EPERM, id="inet6"),
        pytest.param(SOCKET, (16, 3), {}, EPERM, id="netlink"),
        pytest.param(SOCKET, (40, 1), {}, EPERM, id="vsock"),
        pytest.param(SOCKET, (1, 1), {}, EPERM, id="unix"),
        pytest.param(SOCKET, (1, 1), {"unix_sockets": True}, ALLOW, id="unix-allowed"),
        pytest.param(SOCKET, (2, 1), {"unix_sockets": True}, EPERM, id="inet-beside-unix"),
        pytest.param(SOCKET, (2, 1), {"network": True}, ALLOW, id="inet-allowed"),
        pytest.param(SOCKET, (10, 1), {"network": True}, ALLOW, id="inet6-allowed"),
        pytest.param(SOCKET, (1, 1), {"network": True}, EPERM, id="unix-beside-inet"),
        pytest.param(SOCKET, (17, 3), {"network": True}, EPERM, id="packets-never"),
        pytest.param(SOCKET, (40, 1), {"network": True, "unix_sockets": True}, EPERM, id="vsock-never"),
        pytest.param(SOCKET, (2 | 7 << 32, 1), {}, EPERM, id="high-half-of-a-family"),
        pytest.param(SOCKETPAIR, (1, 1), {}, ALLOW, id="pair"),
        pytest.param(SOCKETPAIR, (1, 1 | 0x80000), {}, ALLOW, id="pair-closed-on-exec"),
        pytest.param(SOCKETPAIR, (1, 5), {}, ALLOW, id="pair-of-packets"),
        pytest.param(SOCKETPAIR, (1, 2), {}, EPERM, id="pair-of-datagrams"),
        pytest.param(SOCKETPAIR, (1, 3 | 0x80000), {}, EPERM, id="pair-of-raw"),
        pytest.param(SOCKETPAIR, (1, 2), {"unix_sockets": True}, ALLOW, id="pair-of-datagrams-allowed"),
        pytest.param(SOCKETPAIR, (30, 1), {"unix_sockets": True}, EPERM, id="pair-of-another-family"),
        pytest.param(CLONE, (17,), {}, ALLOW, id="fork"),
        pytest.param(CLONE, (0x3D0F00,), {}, ALLOW, id="thread"),
        pytest.param(CLONE, (0x10000000 | 17,), {}, EPERM, id="clone-user"),
        pytest.param(CLONE, (0x20000 | 17,), {}, EPERM, id="clone-mounts"),
        pytest.param(UNSHARE, (0x400,), {}, ALLOW, id="unshare-files"),
        pytest.param(UNSHARE, (0x40000000,), {}, EPERM, id="unshare-network"),
        pytest.param(UNSHARE, (0x80,), {}, EPERM, id="unshare-time"),
        pytest.param(PTRACE, (), {"network": True, "unix_sockets": True}, EPERM, id="ptrace"),
        pytest.param(MOUNT, (), {}, EPERM, id="mount"),
        pytest.param(IOCTL, (0, 0x5401), {}, ALLOW, id="ask-a-terminal"),
        pytest.param(IOCTL, (0, 0x5412), {}, EPERM, id="type-into-a-terminal"),
        pytest.param(IOCTL, (0, 0x5412 | 1 << 32), {}, EPERM, id="type-with-a-high-half"),
        pytest.param(IOCTL, (0, 0x541C), {}, EPERM, id="console"),
        pytest.param(PERSONALITY, (0xFFFFFFFF,), {}, ALLOW, id="which-personality"),
        pytest.param(PERSONALITY, (0x400000,), {}, EPERM, id="readable-means-executable"),
    ],
)
def test_what_a_call_gets(machine, numbers, args, open_to, verdict):
    assert judged(machine, numbers[machine], *args, **open_to) == verdict


@machines
@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_calls_that_undo_mounts_are_refused(machine, name):
    assert judged(machine, EVERYWHERE[name], network=True, unix_sockets=True) == EPERM


@machines
@pytest.mark.parametrize("number", [425, 426, 427, 435])
def test_calls_that_hide_their_arguments_seem_not_to_exist(machine, number):
    assert judged(machine, number, network=True, unix_sockets=True) == ENOSYS


@machines
@given(number=st.integers(0, 0xFFFFFFFF), network=st.booleans(), unix_sockets=st.booleans())
def test_calls_of_another_architecture_end_the_process(machine, number, network, unix_sockets):
    program = kernel.program(network=network, unix_sockets=unix_sockets, machine=machine)

    for architecture in (0x40000003, *ARCHITECTURES.values()):
        if architecture != ARCHITECTURES[machine]:
            assert decided(program, number, architecture=architecture) == KILL


@given(number=st.integers(0x40000000, 0xFFFFFFFF))
def test_the_second_set_of_numbers_of_x86_64_is_refused(number):
    assert judged("x86_64", number, network=True, unix_sockets=True) == EPERM


@machines
@given(number=st.integers(0, 600), low=st.integers(0, 0xFFFFFFFF), network=st.booleans(), unix_sockets=st.booleans())
def test_every_call_gets_one_of_three_verdicts(machine, number, low, network, unix_sockets):
    verdict = judged(machine, number, low, low, network=network, unix_sockets=unix_sockets)

    assert verdict in {ALLOW, EPERM, ENOSYS}


@machines
def test_few_steps_decide(machine):
    """The kernel runs the program for every number when it is attached; a long way costs each command's start."""
    program = kernel.program(network=False, unix_sockets=False, machine=machine)

    assert len(program) // 8 < 300


def test_another_machine_has_no_filter():
    with pytest.raises(OSError, match="no filter of system calls for riscv64"):
        kernel.program(network=False, unix_sockets=False, machine="riscv64")


@pytest.mark.skipif(not hasattr(os, "uname"), reason="Windows has neither the function nor the filter")
def test_this_machine_has_one_if_it_is_known():
    if os.uname().machine in kernel.machines():
        assert kernel.native(network=False, unix_sockets=False)
    else:
        with pytest.raises(OSError, match="no filter"):
            kernel.native(network=False, unix_sockets=False)
