//! Denials without a record of their own: of calls that cannot be decided or recorded, and of unidentified callers. Each is
//! counted, and the counts are recorded together (`denial_counts`).

use admission::decide::{self, Ruling};
use vap::message::MessageType;
use vap::reason::Reason;

use super::DecisionWriter;
use super::decisions::{DecisionAnswer, DenialsWork, Slot, UnrecordedDenial};
use super::error::WriterError;
use super::jobs::CallJob;

impl DecisionWriter {
    /// Denies a call without VAP, from a caller without token, certificate and proof, if the route's rules deny it to every
    /// caller. `None` if the call is to be decided or recorded.
    ///
    /// A few such calls each minute are decided and recorded like any other. The others are denied here: they need
    /// neither the canonical form of their arguments nor a slot in the writer's queue.
    #[must_use]
    pub fn refused_at_once(&self, job: &CallJob) -> Option<DecisionAnswer> {
        let is_known = job.caller.token.is_some() || job.caller.certificate.is_some() || job.is_proven();
        let is_unidentified = job.envelope.is_none() && !is_known;
        let now = self.inner.context.clock.seconds();
        if !is_unidentified || self.inner.denials.can_record_unidentified(now) {
            return None;
        }
        let rules = self.rules_of(&job.route);
        let reason = decide::denied_to_all(&rules, &job.tool, job.has_roa_envelope && job.chain.is_none())?;
        let denial = UnrecordedDenial::new(None, MessageType::IntentCall, reason.clone());
        Some(self.count_and_deny(None, reason, denial))
    }

    /// Denies a message that could not be decided.
    pub(super) fn deny_undecided(
        &self,
        slot: Option<&Slot>,
        response: MessageType,
        why: &WriterError,
    ) -> DecisionAnswer {
        let denial = UnrecordedDenial::new(slot, response, why.reason());
        tracing::warn!(%why, session_id = denial.verdict.session_id, "denied without a record");
        let session_id = bound_session(&denial, why).map(str::to_owned);
        self.count_and_deny(session_id.as_deref(), why.reason(), denial)
    }

    /// Denies by a ruling that is counted and not recorded.
    pub(super) fn deny_counted(&self, ruling: &Ruling) -> DecisionAnswer {
        if let Some(reason) = &ruling.reason {
            self.count_denial(None, reason.clone());
        }
        DecisionAnswer::unrecorded(&self.inner.context, ruling.into())
    }

    /// Counts a denial, in `stream` or, without one, in the gateway's own stream, and returns it signed.
    pub(super) fn count_and_deny(
        &self,
        stream: Option<&str>,
        reason: Reason,
        denial: UnrecordedDenial,
    ) -> DecisionAnswer {
        self.count_denial(stream, reason);
        DecisionAnswer::unrecorded(&self.inner.context, denial)
    }

    fn count_denial(&self, stream: Option<&str>, reason: Reason) {
        let own = self.own_stream();
        let now = self.inner.context.clock.milliseconds();
        self.inner.denials.count(stream.unwrap_or(&own), &own, reason, now);
    }

    /// Submits the record of the denials counted so far, for each stream that has some.
    pub(super) fn record_counted_denials(&self) {
        for (stream, counted) in self.inner.denials.take() {
            self.submit(Box::new(DenialsWork::new(self.clone(), stream, counted)));
        }
    }
}

/// Returns the session of a denied call that is bound to it. Of any other call, nothing may have verified that it belongs to
/// the session that it names.
fn bound_session<'a>(denial: &'a UnrecordedDenial, why: &WriterError) -> Option<&'a str> {
    let is_bound = *why == WriterError::Crowded { in_session: true };
    is_bound.then_some(denial.verdict.session_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_over_the_limit_of_waiting_ones_is_counted_in_its_session_only_if_they_wait_there() {
        let denial = UnrecordedDenial::new(None, MessageType::IntentCall, Reason::RateLimited);
        let is_counted_there =
            |in_session| bound_session(&denial, &WriterError::Crowded { in_session }).is_some();
        assert!(is_counted_there(true));
        assert!(!is_counted_there(false), "its session is not verified when it waits under an envelope");
        assert!(bound_session(&denial, &WriterError::Busy).is_none());
    }
}
