//! System calls that the filter refuses, each made by a guest of its own.

/// Makes the call with the numbers that are its arguments; returns the name of the error.
pub const CALLER: &str = "
import ctypes, errno
def main(*numbers):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(*[ctypes.c_long(number) for number in numbers])
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result
";

/// The bit of system call numbers that selects the x32 ABI.
const X32: i64 = 0x4000_0000;

/// A call: its name, its number and its arguments.
pub const CALLS: &[(&str, i64, &[i64])] = &[
    ("ptrace", libc::SYS_ptrace, &[0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, &[1]),
    ("kcmp", libc::SYS_kcmp, &[1, 1]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, &[3, 0, 0]),
    ("unshare of users", libc::SYS_unshare, &[libc::CLONE_NEWUSER as i64]),
    ("unshare of nothing", libc::SYS_unshare, &[0]),
    ("setns", libc::SYS_setns, &[0, 0]),
    (
        "clone with a namespace of users",
        libc::SYS_clone,
        &[libc::CLONE_NEWUSER as i64 | libc::SIGCHLD as i64, 0, 0, 0, 0],
    ),
    (
        "clone with a network",
        libc::SYS_clone,
        &[libc::CLONE_NEWNET as i64 | libc::SIGCHLD as i64, 0, 0, 0, 0],
    ),
    ("clone3", libc::SYS_clone3, &[0, 0]),
    ("mount", libc::SYS_mount, &[0, 0, 0, 0, 0]),
    ("umount2", libc::SYS_umount2, &[0, 0]),
    ("pivot_root", libc::SYS_pivot_root, &[0, 0]),
    ("open_tree", libc::SYS_open_tree, &[-100, 0, 1]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, &[-100, 0, 0]),
    ("bpf", libc::SYS_bpf, &[0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, &[0, 0, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, &[0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, &[8, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, &[0, 0, 0, 0, 0]),
    ("io_setup", libc::SYS_io_setup, &[8, 0]),
    ("keyctl", libc::SYS_keyctl, &[0, -3, 0]),
    ("add_key", libc::SYS_add_key, &[0, 0, 0, 0, -3]),
    ("memfd_create", libc::SYS_memfd_create, &[0, 0]),
    ("shmget", libc::SYS_shmget, &[0, 1 << 30, 0o1600]),
    ("kexec_load", libc::SYS_kexec_load, &[0, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, &[0, 0, 0]),
    ("finit_module", libc::SYS_finit_module, &[0, 0, 0]),
    ("reboot", libc::SYS_reboot, &[0, 0, 0, 0]),
    ("personality", libc::SYS_personality, &[0x004_0000]),
    ("typing into the terminal", libc::SYS_ioctl, &[0, libc::TIOCSTI as i64, 0]),
    ("ptrace of x32", X32 | 521, &[0]),
    ("getpid of x32", X32 | 39, &[]),
    ("a call of a later kernel", 467, &[]),
];
