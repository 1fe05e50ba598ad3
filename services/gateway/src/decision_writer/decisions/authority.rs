//! AgentROA in the decision of a call: its inputs from the batch, its statements about the decision, and the state of the
//! envelope after an admitted call.

use admission::decide::Authority;
use admission::rules::{AuthorityDemand, Rules};
use bytes::Bytes;
use evidence::{Claim, ClaimKind, RecordKind};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::oneshot;

use super::registry_position::highest_version;
use super::ruling_records::claim;
use crate::annex::EMPTY;
use crate::authority::{
    AgentRoa, AuthorityCase, AuthorityDecision, CallReceipt, EnvelopeState, PresentedChain, ReceiptReference,
    ReservedUse, UsedEnvelope, capability_of,
};
use crate::config::ReceiptForm;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::CallJob;
use crate::decision_writer::states::{
    ENVELOPES_SINCE, EnvelopesSince, ReceiptCount, StreamState, chain_stream, envelope_stream, random,
    receipts_stream, registry_stream,
};
use crate::decision_writer::transactions::{
    AwaitedSettlement, Batch, DecideError, NewRecord, StreamNotLoaded, Work, WorkItem, WorkStep,
};
use crate::limits::{CHAIN_REMEMBERED, FOR_EVER};

/// The decision of AgentROA about one call, with the stream of its envelope.
#[derive(Clone, Debug)]
pub struct CallAuthority {
    /// The decision.
    pub decision: AuthorityDecision,
    /// The stream of the envelope's state; `None` without a readable chain.
    stream: Option<String>,
    /// The proof that an admitted call uses up.
    proof: Option<Claim>,
}

impl CallAuthority {
    /// Returns the settlement of another call under the envelope that the call waits for, if any. A call for which this is
    /// `None` is decided.
    pub fn awaited_settlement(&self, rules: &Rules, tool: &str) -> Option<AwaitedSettlement> {
        let stream = self.stream.clone().filter(|_| self.decision.waits)?;
        // Routes to several servers may have tools of one name.
        let tool = capability_of(rules, tool)?.to_string();
        Some(AwaitedSettlement { stream, tool })
    }
}

/// The statements of AgentROA about a decision.
#[derive(Default)]
pub struct AuthorityStatements {
    /// The statements, in the order in which they are to be appended.
    pub statements: Vec<NewRecord>,
    /// The reference to the execution receipt among them; `None` without AgentROA.
    pub receipt: Option<ReceiptReference>,
}

/// Returns the streams that the decision of a call needs.
pub fn streams(writer: &DecisionWriter, job: &CallJob) -> Vec<String> {
    let Some(presented) = &job.chain else { return Vec::new() };
    let mut streams = vec![ENVELOPES_SINCE.to_owned(), receipts_stream(writer.instance())];
    streams.extend(envelope_stream_of(presented));
    streams.extend(chain_stream_of(writer, presented));
    let current = writer.agent_roa().and_then(|agent_roa| agent_roa.registry().current());
    streams.extend(current.map(|current| registry_stream(current.registry_id())));
    streams
}

/// Returns the claim on the proof of a call, which is used once.
pub fn proof_claim(job: &CallJob) -> Option<Claim> {
    let presented = job.chain.as_ref()?;
    let (stream, proof) = (envelope_stream_of(presented)?, presented.proof.as_ref()?);
    let chain = presented.chain.as_ref().ok()?;
    Some(claim(&stream, ClaimKind::MessageId, &format!("{} {}", chain.holder(), proof.jti)))
}

/// Returns the stream of the state of the chain's root envelope.
fn envelope_stream_of(presented: &PresentedChain) -> Option<String> {
    presented.chain.as_ref().ok().map(|chain| envelope_stream(chain.root().document()))
}

/// Returns the stream of the chain's own statement, if chains are registered.
fn chain_stream_of(writer: &DecisionWriter, presented: &PresentedChain) -> Option<String> {
    writer.agent_roa()?.registered_digest(presented).map(chain_stream)
}

/// Decides about a call; `is_counted` if it repeats one that was counted. `None` if the route does not enforce AgentROA.
///
/// # Errors
/// [`StreamNotLoaded`].
pub fn decide(
    writer: &DecisionWriter,
    batch: &mut Batch<'_>,
    job: &CallJob,
    rules: &Rules,
    is_counted: bool,
) -> Result<Option<CallAuthority>, StreamNotLoaded> {
    let agent_roa = writer.agent_roa().filter(|_| rules.authority.demand != AuthorityDemand::Off);
    let Some(agent_roa) = agent_roa else { return Ok(None) };
    // The route began to enforce AgentROA after the call arrived.
    let absent = PresentedChain::absent();
    let presented = job.chain.as_ref().unwrap_or(&absent);
    let stored_since = uses_stored_since(batch)?;
    let stream = envelope_stream_of(presented);
    let envelope = match &stream {
        Some(stream) => envelope_state(batch, stream)?,
        None => None,
    };
    // These are written once the call is decided.
    for stream in [receipts_stream(writer.instance())].into_iter().chain(chain_stream_of(writer, presented)) {
        batch.stream(&stream)?;
    }
    let registry = match agent_roa.registry().current() {
        Some(current) => agent_roa.registry().current_at(highest_version(batch, current.registry_id())?),
        None => None,
    };
    let proof = proof_claim(job);
    let decision = agent_roa.decide(AuthorityCase {
        rules,
        registry: registry.as_deref(),
        presented,
        tool: &job.tool,
        envelope: envelope.as_ref(),
        is_proof_used: proof.as_ref().is_some_and(|proof| batch.is_used(proof)),
        is_counted,
        stored_since,
        now: agent_roa.now(),
    });
    Ok(Some(CallAuthority { decision, stream, proof }))
}

/// Returns the time since which the uses of envelopes are stored; the maximum if that is not noted yet.
fn uses_stored_since(batch: &mut Batch<'_>) -> Result<Timestamp, StreamNotLoaded> {
    Ok(match batch.stream(ENVELOPES_SINCE)?.state() {
        Some(StreamState::EnvelopesSince(stored)) => timestamp(stored.since),
        _ => Timestamp::MAX,
    })
}

/// Returns the stored state of an envelope.
fn envelope_state(batch: &mut Batch<'_>, stream: &str) -> Result<Option<EnvelopeState>, StreamNotLoaded> {
    Ok(match batch.stream(stream)?.state() {
        Some(StreamState::Envelope(envelope)) => Some((**envelope).clone()),
        _ => None,
    })
}

/// Returns the decision as VAP's stages take it.
pub fn for_stages(authority: Option<&CallAuthority>, job: &CallJob) -> Authority {
    match authority {
        Some(authority) => authority.decision.authority.clone(),
        None if job.has_roa_envelope => Authority::NotEnforced,
        None => Authority::NotRequired,
    }
}

/// Signs the statements about a decision: its execution receipt, and the statement of its chain unless the chain's stream
/// has it.
pub fn sign_statements(
    writer: &DecisionWriter,
    batch: &mut Batch<'_>,
    job: &CallJob,
    rules: &Rules,
    authority: &CallAuthority,
) -> Result<AuthorityStatements, WriterError> {
    let Some(agent_roa) = writer.agent_roa() else { return Ok(AuthorityStatements::default()) };
    let chain = chain_statement(agent_roa, batch, job, authority)?;
    let stream = receipts_stream(writer.instance());
    let (receipt, reference) = execution_receipt(agent_roa, batch, stream, job, rules, authority)?;
    Ok(AuthorityStatements {
        statements: chain.into_iter().chain([receipt]).collect(),
        receipt: Some(reference),
    })
}

/// Signs the execution receipt of a decision, for the stream of this instance's receipts.
fn execution_receipt(
    agent_roa: &AgentRoa,
    batch: &mut Batch<'_>,
    stream: String,
    job: &CallJob,
    rules: &Rules,
    authority: &CallAuthority,
) -> Result<(NewRecord, ReceiptReference), WriterError> {
    let call = CallReceipt {
        action: rules.authority.servers.split(&job.tool),
        tool: &job.tool,
        arguments: &job.arguments,
        now: authority.decision.decided_at,
    };
    let receipt = agent_roa.receipt(&authority.decision, call, random()?);
    let receipt = receipt.map_err(|error| WriterError::Unsigned(error.to_string()))?;
    let aer_id = receipt.aer_id().to_string();
    let form = agent_roa.receipt_form();
    let signed = batch.context.record_signer.execution_receipt(receipt.bytes(), &aer_id, form)?;
    let (id, audit_ref) = (signed.id, batch.context.record_signer.audit_ref(signed.id));
    count_receipt(batch, &stream)?;
    let annex = match form {
        ReceiptForm::Plain => EMPTY,
        // The receipt that an audit asks for: the statement has only its digest.
        ReceiptForm::Hash => Bytes::copy_from_slice(receipt.bytes()),
    };
    let json = json!({ "receipt": receipt.document(), "audit_ref": audit_ref }).to_string();
    let record = NewRecord { stream, kind: RecordKind::Receipt, signed, verdict: None, annex };
    Ok((record, ReceiptReference { id, aer_id, audit_ref, json }))
}

fn count_receipt(batch: &mut Batch<'_>, stream: &str) -> Result<(), WriterError> {
    let copy = batch.loaded(stream)?;
    let receipts = match copy.state() {
        Some(StreamState::Receipts(count)) => count.receipts,
        _ => 0,
    };
    copy.set_state(StreamState::Receipts(ReceiptCount { receipts: receipts + 1 }));
    copy.set_due(FOR_EVER);
    Ok(())
}

/// Signs the statement of a call's chain for the chain's own stream, which ends with it. `None` if the stream has it
/// already.
fn chain_statement(
    agent_roa: &AgentRoa,
    batch: &mut Batch<'_>,
    job: &CallJob,
    authority: &CallAuthority,
) -> Result<Option<NewRecord>, WriterError> {
    let Some(presented) = &job.chain else { return Ok(None) };
    let Some(stream) = agent_roa.registered_digest(presented).map(chain_stream) else { return Ok(None) };
    let (now, record_signer) = (batch.now, &batch.context.record_signer);
    let copy = batch.loaded(&stream)?;
    if copy.next_seq() > 0 {
        return Ok(None);
    }
    let Some(chain) = agent_roa.chain_to_register(presented, &authority.decision) else { return Ok(None) };
    let signed = record_signer.delegation_chain(chain)?;
    copy.close(now / 1000 + CHAIN_REMEMBERED.as_secs());
    Ok(Some(NewRecord { stream, kind: RecordKind::Chain, signed, verdict: None, annex: EMPTY }))
}

/// Stores the state of the envelope after an admitted call, and uses up its proof.
pub fn store_envelope_state(batch: &mut Batch<'_>, authority: CallAuthority) -> Option<UsedEnvelope> {
    let CallAuthority { decision, stream, proof } = authority;
    let (ReservedUse { envelope, kept_until, spending, tool }, stream) = (decision.used?, stream?);
    let copy = batch.stream(&stream).ok()?;
    copy.set_due(u64::try_from(kept_until).unwrap_or(FOR_EVER));
    copy.set_state(StreamState::Envelope(Box::new(envelope)));
    if let Some(proof) = proof {
        copy.use_claim(proof);
    }
    Some(UsedEnvelope { stream, spending, tool })
}

/// Notes the time since which the uses of envelopes are stored, unless a time is noted.
pub struct EnvelopesSinceWork {
    reply: oneshot::Sender<()>,
}

impl EnvelopesSinceWork {
    /// Creates the work item; the receiver is notified when the time is durable.
    pub fn item() -> (WorkItem, oneshot::Receiver<()>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { reply }), answer)
    }
}

impl Work for EnvelopesSinceWork {
    fn streams(&self) -> Vec<String> {
        vec![ENVELOPES_SINCE.to_owned()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let since = batch.now;
        let copy = batch.stream(ENVELOPES_SINCE)?;
        if copy.state().is_some() {
            return Ok(WorkStep::Unchanged);
        }
        copy.set_state(StreamState::EnvelopesSince(EnvelopesSince { since }));
        copy.set_due(FOR_EVER);
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        let _ = self.reply.send(());
    }

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        Some(self)
    }
}
