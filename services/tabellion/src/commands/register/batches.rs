//! Many files: in batches, where the service takes them, and one by one where it does not.
//!
//! Each batch is written down before the next is sent, so what is lost when the command is stopped is at most one batch,
//! and sending that again changes nothing in the log.

use std::path::PathBuf;

use client::{BATCH_STATEMENTS, ClientError};

use super::work::{Prepared, Work};
use super::{Done, now};
use crate::console::Failure;

/// A batch is sent once it holds this many bytes: less than any service's limit, and soon answered.
const BATCH_BYTES: usize = 4 << 20;

impl Work<'_> {
    /// Registers files in their order; each result is told when it is known.
    pub(super) async fn in_batches(
        &self,
        files: &[PathBuf],
        tell: &impl Fn(&Result<Done, Failure>),
    ) -> Vec<Result<Done, Failure>> {
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

    /// As many of the next files as one batch holds.
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

    /// One result for each file, or none if the service does not take batches, or not this one.
    async fn batch(&self, batch: Vec<Result<Prepared, Failure>>) -> Option<Vec<Result<Done, Failure>>> {
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
            let registered = answers.next().transpose()?;
            self.keep(prepared, registered)
        });
        Some(results.collect())
    }
}
