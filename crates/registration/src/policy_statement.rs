//! Policy statements: their signature, the admission of entry 0, and the order of policies.
//!
//! Entry 0 is signed with an operator key that it lists itself; relying parties pin its entry ID. Every later policy is
//! signed with an operator key of the policy then in force, and has the next revision. `iss` is the log's, `sub` its
//! origin. Later policies are decided like other statements: [`authenticate`], [`Record::read`](crate::Record::read),
//! [`PolicyInForce::decide`].

use merkle::LeafIndex;
use scitt::{SignedStatement, Signer};

use crate::authenticate::{SideData, authenticate};
use crate::decide::PolicyInForce;
use crate::decision::{Permit, Refusal};
use crate::operator::{self, SignError};
use crate::policy::{POLICY_CONTENT_TYPE, Policy, PolicyDigest, is_policy};
use crate::violation::{Place, RuleName, Violation};

/// Signs a policy with an operator key of the policy in force; for entry 0, that is the policy itself.
pub fn sign(policy: &Policy, in_force: &Policy, key: &dyn Signer) -> Result<SignedStatement, SignError> {
    let (contents, operators) = (policy.contents(), &in_force.contents().operators);
    let (log, payload) = ((&*contents.iss, &*contents.origin), policy.payload().to_vec());
    operator::sign(POLICY_CONTENT_TYPE, payload, None, log, operators, key)
}

/// Checks entry 0. Returns the policy in force from then on, and the permit to append the entry.
pub fn genesis(statement: &SignedStatement) -> Result<(PolicyInForce, Permit), Violation> {
    let refused = |rule: &'static str, place: Place, detail: String| Violation {
        rule: RuleName::fixed(rule),
        place,
        detail,
    };
    let named = statement.header().content_type().and_then(|name| name.as_text());
    if !named.is_some_and(is_policy) {
        return Err(refused(
            "content-type-not-admitted",
            Place::protected("3"),
            format!("entry 0 is {POLICY_CONTENT_TYPE}"),
        ));
    }
    let payload = statement.payload().unwrap_or_default();
    let policy = Policy::from_payload(payload)
        .map_err(|mistakes| refused("policy-payload", Place::payload(""), mistakes.to_string()))?;
    let authenticated =
        authenticate(statement, SideData::default(), &policy).map_err(|untrusted| untrusted.violation())?;
    PolicyInForce::new(policy, LeafIndex::new(0))
        .genesis(&authenticated)
        .map_err(|refusal: Refusal| refusal.violation)
}

/// The action for the policy that an operator configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The policy is in force already.
    Keep,
    /// The policy is the next revision, to be signed and registered.
    Publish,
}

/// The error of a configured policy that is neither the one in force nor the next revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyConflict {
    /// The `iss` or origin differs, so it is a policy of another log.
    #[error("the policy in force is for {log}, the configured one for {configured}")]
    AnotherLog {
        /// The `iss` and origin in force.
        log: String,
        /// The configured `iss` and origin.
        configured: String,
    },
    /// The revision is not the next one.
    #[error(
        "the policy in force is revision {log} ({log_digest}), the configured one revision {configured} ({configured_digest}): \
         to change a policy, set revision = {}", .log + 1
    )]
    Revision {
        /// The revision in force.
        log: u64,
        /// The digest of the policy in force.
        log_digest: PolicyDigest,
        /// The configured revision.
        configured: u64,
        /// The digest of the configured policy.
        configured_digest: PolicyDigest,
    },
}

/// Compares the configured policy with the one in force.
pub fn step(in_force: &Policy, configured: &Policy) -> Result<Step, PolicyConflict> {
    let (ours, theirs) = (in_force.contents(), configured.contents());
    // The contents are compared, because a release with more settings serializes the same policy differently.
    if ours == theirs {
        return Ok(Step::Keep);
    }
    if (&ours.iss, &ours.origin) != (&theirs.iss, &theirs.origin) {
        let name = |iss: &str, origin: &str| format!("{iss} ({origin})");
        let (log, configured) = (name(&ours.iss, &ours.origin), name(&theirs.iss, &theirs.origin));
        return Err(PolicyConflict::AnotherLog { log, configured });
    }
    match theirs.revision == ours.revision + 1 {
        true => Ok(Step::Publish),
        false => Err(PolicyConflict::Revision {
            log: ours.revision,
            log_digest: in_force.digest(),
            configured: theirs.revision,
            configured_digest: configured.digest(),
        }),
    }
}
