//! Denials outside of the decision about a call or a message: of requests about tasks, of admitted calls that must not be
//! forwarded after all, and of messages that cannot be decided or recorded.

use admission::authenticated::Authenticated;
use admission::decide::{self, FollowUp, RandomInputs, Ruling, Settled, Task, VerdictDelivery};
use admission::decide::{ClaimKind, DecisionContext, Stream};
use admission::principal::Caller;
use admission::rules::Rules;
use admission::session::Session;
use vap::digest::Digest;
use vap::message::slot::{Key, Shape, Unreadable};
use vap::message::{MessageType, NO_SESSION};
use vap::reason::Reason;
use vap::verdict::{Verdict, VerdictKind, Verification};

use super::session_with_account::SentMessage;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::transactions::Batch;

/// The content of a VAP slot: a message, or the reason why it cannot be read.
pub type Slot = Result<Authenticated, Box<Unreadable>>;

/// A denial without a record.
pub struct UnrecordedDenial {
    /// The Verdict.
    pub verdict: Verdict,
    /// The form in which it is delivered.
    pub delivery: VerdictDelivery,
    /// The digest of the VAP message (V-25).
    pub req: Option<Digest>,
}

impl UnrecordedDenial {
    /// Denies a message that is not decided.
    pub fn new(slot: Option<&Slot>, response: MessageType, reason: Reason) -> Self {
        let (session_id, (shape, key), req) = match slot {
            Some(Ok(received)) => {
                let at = (received.shape, received.key);
                (Some(received.message.session_id()), at, Some(received.digest.clone()))
            }
            Some(Err(unreadable)) => {
                let at = (unreadable.shape, unreadable.key);
                (unreadable.session_id.as_deref(), at, Some(unreadable.digest.clone()))
            }
            None => (None, (Shape::default(), Key::default()), None),
        };
        let verification = Verification { reason: Some(reason), ..Verification::default() };
        let session_id = session_id.unwrap_or(NO_SESSION);
        let verdict = Verdict::new(session_id, Some(response), VerdictKind::Denied, verification);
        Self { verdict, delivery: VerdictDelivery::Sent(shape, key), req }
    }
}

impl From<&Ruling> for UnrecordedDenial {
    fn from(ruling: &Ruling) -> Self {
        Self { verdict: ruling.verdict.clone(), delivery: ruling.delivery, req: ruling.req.clone() }
    }
}

/// Denies an admitted call of which nothing was sent, with the meters after its settlement.
pub fn after_admission(permit: &Ruling, settled: &Settled, reason: Reason) -> Box<Ruling> {
    let mut verdict = permit.verdict.clone();
    verdict.verdict = VerdictKind::Denied;
    verdict.verification.reason = Some(reason.clone());
    (verdict.expires_at, verdict.downgrade, verdict.audit_ref) = (None, None, None);
    let meters = if settled.meters.is_empty() { permit.meters.clone() } else { settled.meters.clone() };
    Box::new(Ruling {
        verdict,
        reason: Some(reason),
        ticket: None,
        pending: None,
        claims: Vec::new(),
        meters,
        ..permit.clone()
    })
}

impl DecisionWriter {
    /// Denies a request about a task, unless the rules in force let this caller make it.
    pub fn denied_follow_up(
        &self,
        route: &str,
        caller: &Caller,
        task: &Task,
        request: FollowUp<'_>,
    ) -> Option<Box<Ruling>> {
        let rules = self.rules_of(route);
        decide::follow_up(&self.context(&rules, caller), task, request)
    }

    /// Denies a request about a task that is not known.
    pub fn denied_unknown_task(&self, route: &str, caller: &Caller, method: &str) -> Box<Ruling> {
        let rules = self.rules_of(route);
        decide::unknown_task(&self.context(&rules, caller), method)
    }

    fn context<'a>(&self, rules: &'a Rules, caller: &'a Caller) -> DecisionContext<'a> {
        DecisionContext { rules, caller, now: self.now(), random: RandomInputs::default() }
    }

    /// Returns whether a denial is counted instead of recorded: its sender is not identified, and this minute's records
    /// of such denials are used up. A denial that consumes a claim other than a `jti` is always recorded.
    pub(super) fn is_only_counted(
        &self,
        batch: &Batch<'_>,
        sent: &SentMessage<'_>,
        session: Option<&Session>,
        ruling: &Ruling,
    ) -> bool {
        let is_denied = ruling.verdict.verdict == VerdictKind::Denied && ruling.stream == Stream::Unbound;
        let uses_claim = ruling.claims.iter().any(|claim| claim.kind != ClaimKind::Jti);
        is_denied
            && !uses_claim
            && is_unidentified(sent, session)
            && !self.inner.denials.records_unidentified(batch.now / 1000)
    }
}

/// Returns whether neither a token nor a certificate nor a signature identifies the sender of a message.
fn is_unidentified(sent: &SentMessage<'_>, session: Option<&Session>) -> bool {
    let caller = sent.context.caller;
    if caller.token.is_some() || caller.certificate.is_some() {
        return false;
    }
    let signed = sent.received.filter(|received| received.message.signature().is_some());
    signed.is_none_or(|received| decide::signed_by(&sent.context, received, &sent.before, session).is_none())
}
