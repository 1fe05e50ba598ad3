//! Registration of many files: in batches, or one by one if the service does not support batches.
//!
//! The results of a batch are written to disk before the next one is sent, so that an interruption loses at most one
//! batch, which can be sent again without effect on the log.

use std::path::PathBuf;

use client::{BATCH_STATEMENTS, ClientError};

use super::work::{Prepared, RegistrationWork, failed};
use super::{RegistrationResult, now};
use crate::console::Failure;

/// Size of a batch in bytes: below every service's limit, and small enough for a fast answer.
const BATCH_BYTES: usize = 4 << 20;

impl RegistrationWork<'_> {
    /// Registers files in order, and calls `tell` with each result.
    pub(super) async fn in_batches(
        &self,
        files: &[PathBuf],
        tell: &impl Fn(&Result<RegistrationResult, Failure>),
    ) -> Vec<Result<RegistrationResult, Failure>> {
        let mut done = Vec::with_capacity(files.len());
        while done.len() < files.len() {
            let rest = &files[done.len()..];
            let Some(results) = self.batch(self.gather(rest)).await else {
                done.extend(self.one_by_one(rest, tell).await);
                break;
            };
            results.iter().for_each(tell);
            done.extend(results);
        }
        done
    }

    /// Prepares the next files, as many as fit in one batch.
    fn gather(&self, files: &[PathBuf]) -> Vec<Result<Prepared, Failure>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for file in files {
            let prepared = self.prepare(file);
            bytes += prepared.as_ref().map_or(0, |prepared| prepared.message.bytes.len());
            batch.push(prepared);
            if batch.len() == BATCH_STATEMENTS || bytes >= BATCH_BYTES {
                break;
            }
        }
        batch
    }

    /// Registers a batch. Returns `None` if the service does not support batches, or refuses this one.
    async fn batch(
        &self,
        batch: Vec<Result<Prepared, Failure>>,
    ) -> Option<Vec<Result<RegistrationResult, Failure>>> {
        let to_send = batch.iter().flatten().filter(|prepared| prepared.kept.is_none());
        let messages: Vec<_> = to_send.map(|one| (&one.message.statement, &one.message.bytes)).collect();
        let answers = match messages.is_empty() {
            true => Ok(Vec::new()),
            false => self.client.register_batch(&messages, &self.trust.store, now()).await,
        };
        let mut answers = match answers {
            Ok(answers) => Ok(answers.into_iter()),
            Err(ClientError::NotFound(_) | ClientError::Refused { .. }) => return None,
            Err(error) => Err(Failure::from(error)),
        };
        let results = batch.into_iter().map(|prepared| {
            let prepared = prepared?;
            if prepared.kept.is_some() {
                return self.keep(prepared, None);
            }
            let answers = answers.as_mut().map_err(|failure| failure.clone())?;
            let registered = answers.next().transpose().map_err(failed)?;
            self.keep(prepared, registered)
        });
        Some(results.collect())
    }
}
