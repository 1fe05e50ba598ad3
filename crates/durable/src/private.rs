//! Whether the file of a secret is private.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Permission bits of the group and of others.
const OF_OTHERS: u32 = 0o077;
/// The permission of the group to read.
const GROUP_READS: u32 = 0o040;

/// Returns whether no user but the process's own may use the file of a secret.
///
/// The group of a file that belongs to root may read it if the process has another user, since an administrator gave it
/// to that group. The files of a Kubernetes Secret are mounted like this. PostgreSQL has the same rule for its TLS key.
pub fn is_private(file: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    is_private_to(user, file.uid(), file.permissions().mode())
}

fn is_private_to(user: u32, owner: u32, mode: u32) -> bool {
    let is_given = owner == 0 && user != 0;
    let forbidden = if is_given { OF_OTHERS & !GROUP_READS } else { OF_OTHERS };
    mode & forbidden == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: u32 = 65532;

    #[test]
    fn the_group_may_read_only_what_root_gave_to_the_user_of_the_process() {
        assert!(is_private_to(SERVICE, SERVICE, 0o100_600) && is_private_to(0, 0, 0o100_400));
        assert!(is_private_to(SERVICE, 0, 0o100_440) && is_private_to(SERVICE, 0, 0o100_640));
        for mode in [0o100_660, 0o100_450, 0o100_444, 0o100_602] {
            assert!(!is_private_to(SERVICE, 0, mode), "{mode:o}");
        }
        assert!(!is_private_to(SERVICE, SERVICE, 0o100_440), "its owner can withdraw that");
        assert!(!is_private_to(0, 0, 0o100_440), "root needs no group");
    }
}
