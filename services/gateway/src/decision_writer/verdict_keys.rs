//! Registration of the public keys of Verdicts at the log: at the start, if the JWK Set is not the one registered last
//! (V-20).
//!
//! The set is a record in the stream `KEYS_STREAM`, which no session id can name.

use evidence::RecordKind;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::DecisionWriter;
use super::error::WriterError;
use super::states::{KEYS_STREAM, RegisteredKeys, StreamState};
use super::transactions::{Batch, DecideError, NewRecord, Work, WorkItem, WorkStep};
use crate::limits::FOR_EVER;

impl DecisionWriter {
    /// Registers the Verdict key set (V-20) if it is not the one registered last, and returns whether it did. Errors
    /// are only logged: a gateway whose disk is full still starts, and denies.
    pub async fn publish(&self, jwk_set: &Value) -> bool {
        let (item, answer) = RegisterKeysWork::item(jwk_set);
        self.submit(item);
        match answer.await {
            Ok(Ok(is_new)) => is_new,
            Ok(Err(error)) => {
                tracing::error!(%error, "the gateway's keys could not be recorded");
                false
            }
            Err(_) => false,
        }
    }
}

/// Registers the key set if it changed.
struct RegisterKeysWork {
    set: Vec<u8>,
    reply: oneshot::Sender<Result<bool, WriterError>>,
    is_new: bool,
}

impl RegisterKeysWork {
    /// Creates the work item for a JWK Set; the receiver gets whether the set was registered.
    fn item(set: &Value) -> (WorkItem, oneshot::Receiver<Result<bool, WriterError>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { set: jose::jcs::canonical(set), reply, is_new: false }), answer)
    }
}

impl Work for RegisterKeysWork {
    fn streams(&self) -> Vec<String> {
        vec![KEYS_STREAM.to_owned()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let (context, now) = (batch.context, batch.now);
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&self.set));
        let copy = batch.stream(KEYS_STREAM)?;
        self.is_new = !matches!(copy.state(), Some(StreamState::Keys(keys)) if keys.digest == digest);
        if !self.is_new {
            return Ok(WorkStep::Unchanged);
        }
        let seconds = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        let signed = context.record_signer.jwk_set(self.set.clone(), seconds, copy.next_seq());
        let signed = signed.map_err(WriterError::from)?;
        copy.set_state(StreamState::Keys(RegisteredKeys { digest }));
        copy.set_due(FOR_EVER);
        let annex = self.set.clone().into();
        let (stream, kind) = (KEYS_STREAM.to_owned(), RecordKind::Keys);
        batch.append(NewRecord { stream, kind, signed, verdict: None, annex })?;
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        // The keys are registered even if the caller has gone.
        let _ = self.reply.send(Ok(self.is_new));
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        let _ = self.reply.send(Err(why.clone()));
        None
    }
}
