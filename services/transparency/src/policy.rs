//! Publishing what the operator configured: entry 0, or the next revision.
//!
//! A policy counts from the moment it is an entry. Same content: go on. Revision + 1: sign and
//! register it. Anything else is refused, naming both.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use registration::Policy;
use registration::operator::SignError;
use registration::policy::statement::{self, PolicyConflict, Step};
use scitt::{SignedStatement, SigningKey};
use sequencer::{Role, Submission, SubmitError};

use crate::admission::{self, CameBeside, Current, PolicyUnreadable};
use crate::config::Config;
use crate::key_files::{KeyFileError, signing_key};
use crate::log::Log;

/// How long a policy may take to get its place, also when another process places it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// Why the configured policy is not in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It is neither the policy in force nor the next one.
    #[error(transparent)]
    Conflict(#[from] PolicyConflict),
    /// It names another log than the configuration does.
    #[error("the policy is for {policy}, the configuration for {configured}")]
    AnotherLog {
        /// `iss` and origin in the policy.
        policy: String,
        /// `iss` and origin configured.
        configured: String,
    },
    /// It has to be signed, and there is no key for it.
    #[error("the policy has to be published, and no operator_key is configured")]
    NoOperatorKey,
    /// The operator key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// It could not be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// It is not admitted by the policy in force, or not a first policy.
    #[error("the policy would not be admitted: {0}")]
    NotAdmitted(String),
    /// It did not get a place.
    #[error("the policy could not be registered: {0}")]
    NotRegistered(String),
    /// The policy in force cannot be read.
    #[error(transparent)]
    Unreadable(#[from] PolicyUnreadable),
    /// It was handed in, and did not get its place.
    #[error("the policy was not registered in time; the process that leads may say why")]
    NotInForce,
}

/// A policy file that has been read.
pub fn read(config: &Config) -> Result<Policy, PolicyError> {
    let failed = |why: String| PolicyError::File { path: config.policy.clone(), why };
    let text = std::fs::read_to_string(&config.policy).map_err(|why| failed(why.to_string()))?;
    let policy = Policy::from_toml(&text).map_err(|mistakes| failed(mistakes.to_string()))?;
    let contents = policy.contents();
    if (&contents.iss, &contents.origin) != (&config.iss, &config.origin) {
        let name = |iss: &str, origin: &str| format!("{iss} ({origin})");
        let (policy, configured) = (name(&contents.iss, &contents.origin), name(&config.iss, &config.origin));
        return Err(PolicyError::AnotherLog { policy, configured });
    }
    Ok(policy)
}

/// Brings the log's policy to what is configured, and answers with the one in force.
pub async fn publish(log: &Log, configured: &Policy, config: &Config) -> Result<Arc<Current>, PolicyError> {
    match in_force(log).await? {
        None => first(log, configured, config).await?,
        Some(current) => match statement::step(current.in_force.policy(), configured)? {
            Step::Keep => return Ok(current),
            Step::Publish => next(log, &current, configured, config).await?,
        },
    }
    settled(log, configured).await
}

/// Waits until the configured policy is in force: another process may be the one that places it.
async fn settled(log: &Log, configured: &Policy) -> Result<Arc<Current>, PolicyError> {
    let looking = async {
        loop {
            if let Some(current) = in_force(log).await?
                && statement::step(current.in_force.policy(), configured)? == Step::Keep
            {
                return Ok(current);
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or(Err(PolicyError::NotInForce))
}

/// The newest policy entry; `None` while the log is empty.
async fn in_force(log: &Log) -> Result<Option<Arc<Current>>, PolicyError> {
    let head = log.store.head().await.map_err(PolicyUnreadable::from)?;
    if head.size().get() == 0 {
        return Ok(None);
    }
    Ok(Some(log.policies.follow(head.policy).await?))
}

/// Entry 0. A process that does not lead leaves it to the one that does.
async fn first(log: &Log, policy: &Policy, config: &Config) -> Result<(), PolicyError> {
    if !matches!(log.sequencer.status().borrow().role, Role::Leading { .. }) {
        return Ok(());
    }
    let signed = sign(policy, policy, config)?;
    let (_, permit) =
        statement::genesis(&signed).map_err(|violation| PolicyError::NotAdmitted(violation.to_string()))?;
    submit(log, admission::genesis(&signed, &permit)).await
}

async fn next(log: &Log, current: &Current, policy: &Policy, config: &Config) -> Result<(), PolicyError> {
    let signed = sign(policy, current.in_force.policy(), config)?;
    let (store, metrics) = (&*log.store, &log.metrics);
    let admitted = admission::admit(&signed, CameBeside::default(), &current.in_force, store, metrics, None);
    let admitted = admitted.await.map_err(|why| PolicyError::NotAdmitted(why.to_string()))?;
    submit(log, admitted.submission).await
}

fn sign(policy: &Policy, in_force: &Policy, config: &Config) -> Result<SignedStatement, PolicyError> {
    let path = config.keys.operator.as_ref().ok_or(PolicyError::NoOperatorKey)?;
    let key: SigningKey = signing_key(path)?;
    Ok(statement::sign(policy, in_force, &key)?)
}

async fn submit(log: &Log, submission: Submission) -> Result<(), PolicyError> {
    match log.sequencer.submit(submission).await {
        Ok(placement) => {
            tracing::info!(leaf = placement.index.get(), "registered the policy");
            Ok(())
        }
        // On its way, or another process was first with this revision: what is in force will tell.
        Err(SubmitError::Accepted | SubmitError::GuardTaken { .. } | SubmitError::PolicyMoved { .. }) => {
            Ok(())
        }
        Err(error) => Err(PolicyError::NotRegistered(error.to_string())),
    }
}
