//! The streams and claims that the decision of a call needs, as far as the call names them.

use evidence::{Claim, ClaimKind};

use super::authority;
use super::ruling_records::{claim, message_id_claim, state_token_stream};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::jobs::CallJob;
use crate::decision_writer::states::{is_changed_by_others, tool_stream};

/// Returns the claims that a call may use.
pub fn claims_of(job: &CallJob) -> Vec<Claim> {
    let claims = [call_message_id_claim(job), state_claim(job), authority::proof_claim(job)];
    claims.into_iter().flatten().collect()
}

/// Returns the streams that hold the state of a call's tool and authority.
pub fn streams_of(writer: &DecisionWriter, job: &CallJob) -> Vec<String> {
    let tool = job.checked.is_some().then(|| tool_stream(&job.route, &job.tool));
    tool.into_iter().chain(authority::streams(writer, job)).collect()
}

/// Returns those of a call's streams that others change while the gateway runs.
pub fn streams_of_others(writer: &DecisionWriter, job: &CallJob) -> Vec<String> {
    streams_of(writer, job).into_iter().filter(|name| is_changed_by_others(name)).collect()
}

/// Returns the id of the session that the call's message names.
pub fn session_id(job: &CallJob) -> Option<&str> {
    job.received().map(|received| received.message.session_id())
}

/// Returns the claim on the `jti` of the call's message.
pub fn call_message_id_claim(job: &CallJob) -> Option<Claim> {
    message_id_claim(job.received()?)
}

/// Returns the claim on the state token that the client returned.
pub fn state_claim(job: &CallJob) -> Option<Claim> {
    let ticket = job.state.as_ref()?.ticket.as_ref()?;
    Some(claim(state_token_stream(session_id(job)), ClaimKind::Question, &ticket.nonce))
}
