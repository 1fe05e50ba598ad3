//! Restrictions that the runner sets on itself before it starts a guest: the wall behind the sandboxes.
//!
//! The kernel ends this process before the signer if memory is short, and the sandboxes put the guests before both.
//!
//! Landlock forbids TCP, and signals and abstract Unix sockets to processes outside. It does not restrict files: a
//! process with such rules may not mount, and bubblewrap builds the guests' file systems by mounts. Kernels that know
//! less enforce what they know; the self-tests of the sandboxes decide whether they may be used.

use std::fs;

use landlock::{ABI, Access, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use sandbox::OOM_SCORE_OF_GUESTS;

/// The newest Landlock ABI that is used.
const NEWEST: ABI = ABI::V6;

/// A restriction that could not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictError {
    /// The kernel refused a Landlock ruleset.
    #[error("Landlock: {0}")]
    Landlock(#[from] RulesetError),
    /// The kernel refused another restriction.
    #[error("{what}: {error}")]
    Refused {
        /// The restriction.
        what: &'static str,
        /// The system's error.
        error: rustix::io::Errno,
    },
}

/// The file with the `oom_score_adj` of this process, which it has from the signer.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Restricts this process and all that it starts. The process must have a single thread, because Landlock rules apply
/// to the calling thread.
///
/// # Errors
/// A [`RestrictError`] with the step that failed.
pub fn restrict() -> Result<(), RestrictError> {
    end_before_the_signer();
    let refused = |what| move |error| RestrictError::Refused { what, error };
    rustix::thread::set_no_new_privs(true).map_err(refused("no_new_privs"))?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(refused("core dumps"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused("dumpable"))?;
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()?;
    Ok(())
}

/// Has the kernel end this process before the signer, and after guests, if memory is short. A kernel that does not allow it
/// decides by size alone.
fn end_before_the_signer() {
    // Before the process is not dumpable: its files in `/proc` then belong to root.
    let of_signer = fs::read_to_string(OOM_SCORE).ok().and_then(|text| text.trim().parse().ok());
    if let Some(of_signer) = of_signer {
        let _ = fs::write(OOM_SCORE, oom_score(of_signer).to_string());
    }
}

/// The `oom_score_adj` of a runner: halfway between those of the signer and of guests. A process may always raise its own.
fn oom_score(of_signer: i16) -> i16 {
    i16::midpoint(of_signer, OOM_SCORE_OF_GUESTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_killed_after_guests_and_before_a_signer_with_any_score() {
        for of_signer in [-1000, -999, 0, 500, 501, 968] {
            let score = oom_score(of_signer);
            assert!(of_signer < score && score < OOM_SCORE_OF_GUESTS, "{of_signer}: {score}");
        }
        assert_eq!(oom_score(OOM_SCORE_OF_GUESTS), OOM_SCORE_OF_GUESTS, "a container that has the largest");
    }
}
