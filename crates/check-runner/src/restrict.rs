//! Restrictions that the runner sets on itself before it starts a guest: the wall behind the sandboxes.
//!
//! The kernel ends this process before the signer if memory is short, and the sandboxes put the guests before both.
//!
//! Landlock forbids TCP, and signals and abstract Unix sockets to processes outside. It does not restrict files: a
//! process with such rules may not mount, and bubblewrap builds the guests' file systems by mounts. Kernels that know
//! less enforce what they know; the self-tests of the sandboxes decide whether they may be used.

use landlock::{ABI, Access, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

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

/// The `oom_score_adj` of a runner: more than that of the signer, and less than that of guests.
const OOM_SCORE: &str = "500";

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

/// Has the kernel end this process before the signer if memory is short. A kernel that does not allow it, as where an operator set
/// a higher value, decides by size alone.
fn end_before_the_signer() {
    // Before the process is not dumpable: its files in `/proc` then belong to root.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}
