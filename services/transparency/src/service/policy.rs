//! Publication of the configured policy, as entry 0 or as the next revision.
//!
//! A policy takes effect once it is an entry. If the configured policy has the content of the one in force, there is
//! nothing to do. If it is the next revision, it is signed and registered. Anything else is refused with an error that
//! names both. A policy that is configured while this process registers nothing is published once it registers again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use registration::operator::SignError;
use registration::policy_statement::{self as statement, PolicyConflict, Step};
use registration::{Policy, SideData};
use scitt::{SignedStatement, SigningKey};
use sequencer::{Role, Status, Submission, SubmitError};
use tokio::sync::watch;

use crate::config::Config;
use crate::keys::key_files::{KeyFileError, signing_key};
use crate::log::admission::{self, NotAdmitted};
use crate::log::policies::{PolicyEntry, PolicyUnreadable};
use crate::log::state::Log;

/// The longest wait for the policy's registration, also by another process.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between two reads of the policy in force.
const POLICY_POLL: Duration = Duration::from_millis(50);
/// Pause before an outstanding policy is published again after a failure.
const PUBLICATION_RETRY: Duration = Duration::from_secs(5);

/// Reason why the configured policy is not in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The policy file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The defect, in words.
        why: String,
    },
    /// The policy is neither the one in force nor the next revision.
    #[error(transparent)]
    Conflict(#[from] PolicyConflict),
    /// The policy names another log than the configuration does.
    #[error("the policy is for {policy}, the configuration for {configured}")]
    AnotherLog {
        /// `iss` and origin in the policy.
        policy: String,
        /// `iss` and origin configured.
        configured: String,
    },
    /// The policy must be signed, and no `operator_key` is configured.
    #[error("the policy has to be published, and no operator_key is configured")]
    NoOperatorKey,
    /// The operator key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Signing the policy failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The policy in force does not admit it, or it is not valid as a first policy.
    #[error("the policy would not be admitted: {0}")]
    NotAdmitted(String),
    /// The sequencer did not register the policy.
    #[error("the policy could not be registered: {0}")]
    NotRegistered(String),
    /// The policy in force cannot be read.
    #[error(transparent)]
    Unreadable(#[from] PolicyUnreadable),
    /// The policy was submitted, and is not in force within `PATIENCE`.
    #[error("the policy was not registered in time; the process that leads may say why")]
    NotInForce,
}

impl PolicyError {
    /// Returns `true` if the same policy cannot be published with the same files: somebody has to change one of them, or
    /// the program.
    fn is_permanent(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::Conflict(_)
            | Self::AnotherLog { .. }
            | Self::NoOperatorKey
            | Self::Key(_)
            | Self::Sign(_)
            | Self::NotAdmitted(_)
            | Self::Unreadable(PolicyUnreadable::NotAPolicy { .. }) => true,
            Self::NotRegistered(_) | Self::Unreadable(PolicyUnreadable::Store(_)) | Self::NotInForce => false,
        }
    }
}

/// The configured policy, with the key file for its signature.
pub struct ConfiguredPolicy {
    policy: Policy,
    operator_key: Option<PathBuf>,
}

/// Reads the configured policy file, and checks that it is for this log.
pub fn read(config: &Config) -> Result<ConfiguredPolicy, PolicyError> {
    let failed = |why: String| PolicyError::File { path: config.policy.clone(), why };
    let text = std::fs::read_to_string(&config.policy).map_err(|why| failed(why.to_string()))?;
    let policy = Policy::from_toml(&text).map_err(|mistakes| failed(mistakes.to_string()))?;
    let contents = policy.contents();
    if (&contents.iss, &contents.origin) != (&config.iss, &config.origin) {
        let name = |iss: &str, origin: &str| format!("{iss} ({origin})");
        let (policy, configured) = (name(&contents.iss, &contents.origin), name(&config.iss, &config.origin));
        return Err(PolicyError::AnotherLog { policy, configured });
    }
    Ok(ConfiguredPolicy { policy, operator_key: config.keys.operator.clone() })
}

/// Publishes each outstanding policy once this process registers. A newer one replaces it, and `None` cancels it.
pub async fn publish_later(log: Arc<Log>, mut outstanding: watch::Receiver<Option<Arc<ConfiguredPolicy>>>) {
    loop {
        let configured = outstanding.borrow_and_update().clone();
        let publishing = async {
            if let Some(configured) = configured {
                publish_when_possible(&log, &configured).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = publishing => {}
            changed = outstanding.changed() => if changed.is_err() { return },
        }
    }
}

/// Publishes a policy as soon as this process can; repeats after failures that are not permanent.
async fn publish_when_possible(log: &Log, configured: &ConfiguredPolicy) {
    let mut status = log.sequencer.status();
    loop {
        let is_possible = status.wait_for(can_publish).await.is_ok();
        if !is_possible {
            return;
        }
        match publish(log, configured).await {
            Ok(()) => return tracing::info!("the configured policy is in force now"),
            Err(error) if error.is_permanent() => return end_publication(log, configured, &error).await,
            Err(error) => tracing::warn!(%error, "the configured policy is not in force yet"),
        }
        tokio::time::sleep(PUBLICATION_RETRY).await;
    }
}

/// Logs that the policy is not published. The failure does not count if another process has published it first.
async fn end_publication(log: &Log, configured: &ConfiguredPolicy, error: &PolicyError) {
    match is_in_force(log, configured).await {
        Ok(true) => tracing::info!("another process has put the configured policy in force"),
        Ok(false) | Err(_) => {
            tracing::error!(%error, "the configured policy is not put in force: correct it and reload");
        }
    }
}

/// Returns `true` if this process leads, or another one does that has registered a policy.
fn can_publish(status: &Status) -> bool {
    let leads = matches!(status.role, Role::Leading { .. });
    status.obstacle().is_none() && (leads || status.size.get() > 0)
}

/// Publishes the configured policy, and returns once it is in force.
pub async fn publish(log: &Log, configured: &ConfiguredPolicy) -> Result<(), PolicyError> {
    match in_force(log).await? {
        None => first(log, configured).await?,
        Some(current) => match statement::step(current.in_force.policy(), &configured.policy)? {
            Step::Keep => return Ok(()),
            Step::Publish => next(log, &current, configured).await?,
        },
    }
    settled(log, &configured.policy).await
}

/// Reads the log's policy, and returns whether it is the configured one.
pub async fn is_in_force(log: &Log, configured: &ConfiguredPolicy) -> Result<bool, PolicyError> {
    Ok(in_force(log).await?.is_some_and(|current| {
        statement::step(current.in_force.policy(), &configured.policy) == Ok(Step::Keep)
    }))
}

/// Waits until the configured policy is in force: another process may be the one that registers it.
async fn settled(log: &Log, configured: &Policy) -> Result<(), PolicyError> {
    let looking = async {
        loop {
            if let Some(current) = in_force(log).await?
                && statement::step(current.in_force.policy(), configured)? == Step::Keep
            {
                return Ok(());
            }
            tokio::time::sleep(POLICY_POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or(Err(PolicyError::NotInForce))
}

/// The newest policy entry; `None` while the log is empty.
async fn in_force(log: &Log) -> Result<Option<Arc<PolicyEntry>>, PolicyError> {
    let head = log.store.head().await.map_err(PolicyUnreadable::from)?;
    if head.size().get() == 0 {
        return Ok(None);
    }
    Ok(Some(log.policies.follow(head.policy).await?))
}

/// Submits the policy as entry 0. A process that does not lead leaves this to the leader.
async fn first(log: &Log, configured: &ConfiguredPolicy) -> Result<(), PolicyError> {
    if !matches!(log.sequencer.status().borrow().role, Role::Leading { .. }) {
        return Ok(());
    }
    let signed = sign(configured, &configured.policy)?;
    let (_, permit) =
        statement::genesis(&signed).map_err(|violation| PolicyError::NotAdmitted(violation.to_string()))?;
    submit(log, admission::genesis(&signed, &permit)).await
}

async fn next(log: &Log, current: &PolicyEntry, configured: &ConfiguredPolicy) -> Result<(), PolicyError> {
    let signed = sign(configured, current.in_force.policy())?;
    let (store, metrics) = (&*log.store, &log.metrics);
    let admitted = admission::admit(&signed, SideData::default(), &current.in_force, store, metrics, None);
    submit(log, admitted.await.map_err(not_admitted)?.submission).await
}

/// Converts the reason why a policy was not admitted: some of them pass.
fn not_admitted(why: NotAdmitted) -> PolicyError {
    match why {
        NotAdmitted::OverQuota(_) | NotAdmitted::Undecided(_) | NotAdmitted::Store(_) => {
            PolicyError::NotRegistered(why.to_string())
        }
        NotAdmitted::Untrusted(_)
        | NotAdmitted::Refused(_)
        | NotAdmitted::Held(_)
        | NotAdmitted::NothingToHold(_) => PolicyError::NotAdmitted(why.to_string()),
    }
}

fn sign(configured: &ConfiguredPolicy, in_force: &Policy) -> Result<SignedStatement, PolicyError> {
    let path = configured.operator_key.as_ref().ok_or(PolicyError::NoOperatorKey)?;
    let key: SigningKey = signing_key(path)?;
    Ok(statement::sign(&configured.policy, in_force, &key)?)
}

async fn submit(log: &Log, submission: Submission) -> Result<(), PolicyError> {
    match log.sequencer.submit(submission).await {
        Ok(placement) => {
            tracing::info!(leaf = placement.index.get(), "registered the policy");
            Ok(())
        }
        Err(error) => not_registered(&error),
    }
}

/// Converts the reason why the sequencer has not registered a policy, if it is a failure: some of them are final.
fn not_registered(error: &SubmitError) -> Result<(), PolicyError> {
    match error {
        // The policy is accepted, or another process was first: `settled` looks at the policy in force.
        SubmitError::Accepted | SubmitError::GuardTaken { .. } | SubmitError::PolicyMoved { .. } => Ok(()),
        SubmitError::Twin { .. }
        | SubmitError::OutsideWindow { .. }
        | SubmitError::LogFull { .. }
        | SubmitError::DigestMismatch { .. }
        | SubmitError::NoCorrection(_) => Err(PolicyError::NotAdmitted(error.to_string())),
        SubmitError::QueueFull { .. }
        | SubmitError::InboxFull { .. }
        | SubmitError::NoPolicy
        | SubmitError::RelyOnAbsent { .. }
        | SubmitError::Halted(_)
        | SubmitError::Stopping
        | SubmitError::Store(_) => Err(PolicyError::NotRegistered(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use merkle::{LeafIndex, TreeSize};
    use store::{GuardKey, StoreError};

    use super::*;

    #[test]
    fn what_only_a_change_of_a_file_or_of_the_program_ends_is_permanent_and_the_rest_passes() {
        let full = SubmitError::LogFull { size: TreeSize::new(5), largest: TreeSize::new(5) };
        let not_understood =
            PolicyUnreadable::NotAPolicy { leaf: LeafIndex::new(1), why: "a newer version".to_owned() };
        for permanent in [
            PolicyError::File { path: "policy.toml".into(), why: "not TOML".to_owned() },
            PolicyError::NoOperatorKey,
            PolicyError::Sign(SignError::NotAnOperator("a key".to_owned())),
            PolicyError::Unreadable(not_understood),
            not_admitted(NotAdmitted::NothingToHold(LeafIndex::new(1))),
            not_registered(&full).unwrap_err(),
            not_registered(&SubmitError::NoCorrection("no")).unwrap_err(),
        ] {
            assert!(permanent.is_permanent(), "{permanent}");
        }
        let away = || StoreError::Unavailable("away".to_owned());
        let busy = SubmitError::QueueFull { retry_after: Duration::from_secs(1) };
        for passing in [
            PolicyError::NotInForce,
            PolicyError::Unreadable(away().into()),
            not_admitted(away().into()),
            not_registered(&busy).unwrap_err(),
            not_registered(&SubmitError::Store(Arc::new(away()))).unwrap_err(),
        ] {
            assert!(!passing.is_permanent(), "{passing}");
        }
    }

    #[test]
    fn a_policy_that_is_accepted_or_that_another_process_published_first_is_no_failure() {
        let index = LeafIndex::new(1);
        for no_failure in [
            SubmitError::Accepted,
            SubmitError::GuardTaken { key: GuardKey(Vec::new()), index },
            SubmitError::PolicyMoved { policy: index },
        ] {
            not_registered(&no_failure).unwrap();
        }
    }
}
