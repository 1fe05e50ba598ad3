//! Early denials of calls by unidentified callers that no rule could admit: before their arguments are processed, and
//! without the writer.
//!
//! A few of them each minute are decided and recorded like any other call. The others are counted, so they need neither
//! the canonical form of their arguments nor a slot in the writer's queue.

use admission::decide::{self, Telling};
use admission::message::slot::{Key, Shape};
use admission::message::{MessageType, NO_SESSION};
use admission::verdict::{Verdict, VerdictKind, Verification};

use super::Desk;
use super::jobs::CallJob;
use super::told::{Told, unrecorded};

impl Desk {
    /// Denies a call without VAP, from a caller without token and certificate, if the route's rules deny it to every
    /// caller. `None` if the call is to be decided or recorded.
    #[must_use]
    pub fn refused_at_once(&self, job: &CallJob) -> Option<Told> {
        let is_stranger =
            job.envelope.is_none() && job.caller.token.is_none() && job.caller.certificate.is_none();
        if !is_stranger || self.inner.denials.has_room_for_a_stranger(self.inner.house.clock.seconds()) {
            return None;
        }
        let rules = self.rules_of(&job.route);
        let reason = decide::denied_to_all(&rules, &job.tool, job.has_roa_envelope)?;
        self.count_denial(None, reason.clone());
        let verification = Verification { reason: Some(reason), ..Verification::default() };
        let verdict =
            Verdict::new(NO_SESSION, Some(MessageType::IntentCall), VerdictKind::Denied, verification);
        let telling = Telling::Told(Shape::default(), Key::default());
        Some(unrecorded(&self.inner.house, verdict, telling, None))
    }
}
