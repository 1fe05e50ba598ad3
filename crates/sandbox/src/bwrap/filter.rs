//! The seccomp filter of a guest: system calls that reach parts of the kernel which a program does not need.
//!
//! A refused call fails with `ENOSYS`, as in a kernel that does not have it, so that the C library falls back to what is left
//! (`clone3` to `clone`). Calls with numbers of other ABIs (x32), or newer than this list, are refused as a whole; the filter
//! kills a process that uses the 32-bit entry.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use crate::SandboxError;

/// The newest system call that guests may use: `futex_requeue`, of Linux 6.7.
const NEWEST_CALL: u32 = 456;

/// Requests of `ioctl` that type into a terminal: `TIOCSTI` and `TIOCLINUX`, the same on all architectures.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

const ENOSYS: u32 = libc::ENOSYS as u32;

/// Returns the filter as the kernel reads it, for `--seccomp` of bubblewrap.
pub(super) fn filter() -> Result<Vec<u8>, SandboxError> {
    let program = compile()
        .map_err(|error| SandboxError::Failed(format!("the seccomp filter is unusable: {error}")))?;
    let instructions = only_known_calls().into_iter().chain(program);
    Ok(instructions.flat_map(|instruction| encode(&instruction)).collect())
}

fn compile() -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(ENOSYS);
    SeccompFilter::new(rules()?, SeccompAction::Allow, refused, architecture)?.try_into()
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<_, _> =
        REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, new_namespaces()?);
    rules.insert(libc::SYS_ioctl, vec![terminal_input(TIOCSTI)?, terminal_input(TIOCLINUX)?]);
    Ok(rules)
}

/// `clone` with one of the flags that make a namespace.
fn new_namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    NAMESPACES.iter().map(|flag| flag_is_set(0, *flag as u64)).collect()
}

const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

fn flag_is_set(argument: u8, flag: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let set = SeccompCmpOp::MaskedEq(flag);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Qword, set, flag)?])
}

fn terminal_input(request: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?])
}

/// Refuses numbers above [`NEWEST_CALL`], before the rules by number.
fn only_known_calls() -> [sock_filter; 3] {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    [
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: NEWEST_CALL },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | ENOSYS },
    ]
}

fn encode(instruction: &sock_filter) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (instruction.code.to_ne_bytes(), instruction.k.to_ne_bytes());
    [a, b, instruction.jt, instruction.jf, c, d, e, f]
}

/// Calls that are refused with any arguments.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces, roots and mounts. The flags of `clone3` are out of reach for a filter.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_clone3,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Sockets of all families.
    libc::SYS_socket,
    libc::SYS_socketpair,
    // Programs in the kernel, and its queues.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_setup,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_fanotify_init,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Memory that no bound of the guest counts.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_vmsplice,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
];

/// Calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS__sysctl,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];

#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

#[cfg(test)]
mod tests {
    use super::{NEWEST_CALL, filter};

    #[test]
    fn the_filter_refuses_numbers_of_other_abis_first() {
        let filter = filter().expect("the rules compile");

        assert_eq!(filter.len() % 8, 0);
        assert_eq!(filter[12..16], NEWEST_CALL.to_ne_bytes());
    }
}
