//! Registration of the keys that sign Verdicts: at the start, if the JWK Set is not the one registered last (V-20).
//!
//! The set is a record in the stream `KEYS_STREAM`, which no session id can name.

use evidence::RecordKind;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::error::DeskError;
use super::states::{KEYS_STREAM, Said, State};
use super::writer::{Books, Job, NewRecord, Step, Work};
use crate::limits::FOR_EVER;

/// A job that registers the key set if it changed.
pub struct PublishKeys {
    set: Vec<u8>,
    tell: oneshot::Sender<Result<bool, DeskError>>,
    said: bool,
}

impl PublishKeys {
    /// Creates the job for a JWK Set; the receiver gets whether the set was registered.
    pub fn job(set: &serde_json::Value) -> (Job, oneshot::Receiver<Result<bool, DeskError>>) {
        let (tell, told) = oneshot::channel();
        (Box::new(Self { set: jose::jcs::canonical(set), tell, said: false }), told)
    }
}

impl Work for PublishKeys {
    fn streams(&self) -> Vec<String> {
        vec![KEYS_STREAM.to_owned()]
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let (house, now) = (books.house, books.now);
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&self.set));
        let Some(sheet) = books.sheet(KEYS_STREAM) else { return Step::Needs(books.missing()) };
        if matches!(sheet.state(), Some(State::Said(said)) if said.digest == digest) {
            self.said = false;
            return Step::Nothing;
        }
        let seconds = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        let signed = match house.notary.jwk_set(self.set.clone(), seconds, sheet.next_seq()) {
            Ok(signed) => signed,
            Err(error) => return Step::Impossible(error.into()),
        };
        sheet.put(State::Said(Said { digest }), false);
        sheet.keep(FOR_EVER);
        let annex = self.set.clone().into();
        sheet.record(KEYS_STREAM, now, NewRecord { kind: RecordKind::Keys, signed, verdict: None, annex });
        self.said = true;
        Step::Decided
    }

    fn committed(self: Box<Self>) {
        // The keys are registered even if the caller has gone.
        let _ = self.tell.send(Ok(self.said));
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        let _ = self.tell.send(Err(why.clone()));
        None
    }
}
