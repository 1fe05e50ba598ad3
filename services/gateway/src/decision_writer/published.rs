//! Registration of the keys that sign Verdicts: at the start, if the JWK Set is not the one registered last (V-20).
//!
//! The set is a record in the stream `KEYS_STREAM`, which no session id can name.

use evidence::RecordKind;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::error::WriterError;
use super::states::{KEYS_STREAM, RegisteredKeys, StreamState};
use super::transactions::{Batch, Job, JobStep, NewRecord, Work};
use crate::limits::FOR_EVER;

/// A job that registers the key set if it changed.
pub struct PublishKeys {
    set: Vec<u8>,
    reply: oneshot::Sender<Result<bool, WriterError>>,
    is_new: bool,
}

impl PublishKeys {
    /// Creates the job for a JWK Set; the receiver gets whether the set was registered.
    pub fn job(set: &serde_json::Value) -> (Job, oneshot::Receiver<Result<bool, WriterError>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { set: jose::jcs::canonical(set), reply, is_new: false }), answer)
    }
}

impl Work for PublishKeys {
    fn streams(&self) -> Vec<String> {
        vec![KEYS_STREAM.to_owned()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let (context, now) = (batch.context, batch.now);
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&self.set));
        let Some(copy) = batch.stream(KEYS_STREAM) else { return JobStep::Needs(batch.missing()) };
        if matches!(copy.state(), Some(StreamState::Keys(keys)) if keys.digest == digest) {
            self.is_new = false;
            return JobStep::Nothing;
        }
        let seconds = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        let signed = match context.record_signer.jwk_set(self.set.clone(), seconds, copy.next_seq()) {
            Ok(signed) => signed,
            Err(error) => return JobStep::Impossible(error.into()),
        };
        copy.put(StreamState::Keys(RegisteredKeys { digest }), false);
        copy.keep(FOR_EVER);
        let annex = self.set.clone().into();
        let (stream, kind) = (KEYS_STREAM.to_owned(), RecordKind::Keys);
        if let Err(error) = batch.append(NewRecord { stream, kind, signed, verdict: None, annex }) {
            return JobStep::Impossible(error);
        }
        self.is_new = true;
        JobStep::Decided
    }

    fn committed(self: Box<Self>) {
        // The keys are registered even if the caller has gone.
        let _ = self.reply.send(Ok(self.is_new));
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        let _ = self.reply.send(Err(why.clone()));
        None
    }
}
