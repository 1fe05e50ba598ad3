"""A hostile guest for the self-test: tries what must not work, prints the name of each restriction that is missing."""

import ctypes
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
# Numbers on x86-64 and on the other architectures, of: ptrace, unshare, setns, mount, keyctl, bpf, io_uring_setup, userfaultfd, perf_event_open.
CALLS = {
    "ptrace": (101, 117, 0),
    "unshare": (272, 97, 0),
    "setns": (308, 268, 0),
    "mount": (165, 40, 0),
    "keyctl": (250, 219, 0),
    "bpf": (321, 280, 0),
    "io_uring": (425, 425, 8),
    "userfaultfd": (323, 282, 0),
    "perf_event_open": (298, 241, 0),
}
ENOSYS = 38


def system_calls():
    x86 = os.uname().machine == "x86_64"
    for name, (on_x86, elsewhere, argument) in CALLS.items():
        ctypes.set_errno(0)
        libc.syscall(on_x86 if x86 else elsewhere, argument, 0, 0, 0, 0)
        if ctypes.get_errno() != ENOSYS:
            yield name


def network():
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_VSOCK):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
            yield f"socket family {family.name}"
        except OSError:
            pass


def files():
    for path in ("/etc/passwd", "/proc/1/environ", "/home", "/root", "/var", "/run", "/sys", "/job/../etc"):
        if os.path.exists(path):
            yield f"{path} out of sight"
    for path in ("/usr/escaped", "/job/escaped", "/escaped", "/dev/escaped"):
        try:
            open(path, "w").close()
            yield f"{path} read-only"
        except OSError:
            pass


def privileges():
    try:
        os.setuid(0)
        if os.geteuid() == 0:
            yield "users"
    except OSError:
        pass
    try:
        os.nice(-5)
        yield "capabilities"
    except OSError:
        pass


def processes():
    children = []
    try:
        for _ in range(64):
            child = os.fork()
            if child == 0:
                os.read(0, 1)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, 9)
    if len(children) >= 64:
        yield "a bound on processes"


sys.stdout.write("\n".join([*system_calls(), *network(), *files(), *privileges(), *processes()]))
