//! Detection of the isolation features of this system.

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};

use super::user::User;

/// Isolation that this system offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Landlock can restrict file access (ABI 1, Linux 5.13).
    pub landlock: bool,
    /// Landlock can restrict signals and abstract Unix sockets, too (ABI 6, Linux 6.12).
    pub landlock_scopes: bool,
    /// The gateway runs as root, and can give a server another user.
    pub root: bool,
}

impl Host {
    /// Asks the kernel for its features.
    #[must_use]
    pub fn detect() -> Self {
        Self {
            landlock: offers(|ruleset| ruleset.handle_access(AccessFs::from_all(ABI::V1))),
            landlock_scopes: offers(|ruleset| ruleset.scope(Scope::from_all(ABI::V6))),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// A description for the operator.
    #[must_use]
    pub fn describe(&self) -> String {
        let landlock = match (self.landlock, self.landlock_scopes) {
            (true, true) => "Landlock keeps children from the gateway's files, memory and signals",
            (true, false) => {
                "Landlock keeps children from the gateway's files and memory, not from sending it signals (Linux 6.12 would)"
            }
            (false, _) => {
                "the kernel offers no Landlock (Linux 5.13 or newer, with landlock in its `lsm=` list)"
            }
        };
        let user = match self.root {
            true => "; a server can have a `user` of its own",
            false => "; a server cannot have a `user` of its own, as the gateway does not run as root",
        };
        format!("{landlock}{user}")
    }
}

/// Returns whether the kernel supports a ruleset with this demand.
fn offers(demand: impl FnOnce(Ruleset) -> Result<Ruleset, landlock::RulesetError>) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    demand(ruleset).is_ok_and(|ruleset| ruleset.create().is_ok())
}

/// Reason why a server cannot be isolated as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotIsolated {
    /// The kernel has no Landlock, and the server has no user of its own.
    #[error(
        "route {0}: nothing would keep the server from reading the gateway's keys: the kernel has no Landlock (Linux 5.13 or \
         newer, with landlock in its `lsm=` list), and the server has no `user` of its own. Provide one of them, reach the \
         server over HTTP, or start the gateway with --unsafe-shared-user"
    )]
    Nothing(String),
    /// Only root can start a process as another user.
    #[error("route {0}: `user` needs a gateway that runs as root")]
    NeedsRoot(String),
    /// The configured user is the gateway's own user.
    #[error("route {0}: `user` is the gateway's own user")]
    OwnUser(String),
}

/// Checks that a server of a route can be isolated on this system, with the user that is configured for it.
///
/// # Errors
/// A [`NotIsolated`] if it cannot.
pub fn require(
    user: Option<&User>,
    route: &str,
    host: Host,
    unsafe_shared_user: bool,
) -> Result<(), NotIsolated> {
    match user {
        Some(_) if !host.root => Err(NotIsolated::NeedsRoot(route.to_owned())),
        Some(user) if user.uid == rustix::process::geteuid().as_raw() => {
            Err(NotIsolated::OwnUser(route.to_owned()))
        }
        None if !host.landlock && !unsafe_shared_user => Err(NotIsolated::Nothing(route.to_owned())),
        _ => Ok(()),
    }
}
