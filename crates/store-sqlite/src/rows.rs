//! [`Rows`]: the statements that write a batch, and what a constraint that one of them breaks means.

use merkle::{EntryDigest, TreeSize};
use sqlite::{Script, ScriptFailure};
use sqlx::SqliteConnection;
use store::{Batch, CommitError, CommittedHead, Effect, Head, HeadSignature, NewEntry, StoreError};

use crate::log_state::end_log;
use crate::sql::{self, seen_key, signed};
use crate::{Sqlite, custody, tiles, transaction};

/// Value of `log.holder` after an entry froze the log.
const FROZEN_BY: &str = "the operator's freeze";

/// Statements that write a batch.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) script: Script,
    /// Parts of the script in their order: the number of the statement after each, and what its broken constraints mean.
    parts: Vec<(usize, Broken)>,
}

/// Meaning of a broken constraint.
#[derive(Clone, Copy, Debug)]
enum Broken {
    /// The head in force is not the expected one.
    OtherHead,
    /// No commit wrote the conflicting row.
    BeyondTheHead,
    AlreadySeen,
    GuardTaken,
    /// No head of this size was committed.
    UnknownHead(TreeSize),
    /// The database refuses the rows.
    Refused,
}

impl Rows {
    /// The statements of a transaction of its own, after its BEGIN.
    pub(crate) fn of_transaction() -> Self {
        Self { script: transaction::script(), parts: Vec::new() }
    }

    /// Executes the statements in an open transaction.
    pub(crate) async fn run(mut self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let run = self.script.run(connection).await;
        run.map(drop).map_err(|failure| without_a_batch(self.meaning(failure)))
    }

    /// Executes the statements as a transaction of its own that commits no batch.
    pub(crate) async fn keep(mut self, store: &Sqlite) -> Result<(), StoreError> {
        let kept = store.write.commit(std::mem::take(&mut self.script)).await;
        kept.map_err(|failure| without_a_batch(self.meaning(failure)))
    }

    /// Executes the statements as the transaction that commits a batch.
    pub(crate) async fn commit(mut self, store: &Sqlite) -> Result<(), CommitError> {
        let committed = store.write.commit(std::mem::take(&mut self.script)).await;
        committed.map_err(|failure| match failure.may_have_ended {
            true => CommitError::Unknown(failure.error.to_string()),
            false => self.meaning(failure),
        })
    }

    /// Adds all rows of a batch that grows the log, if the head that it follows is in force: else `CommitError::Fenced`,
    /// also for a log that is frozen or being filled.
    pub(crate) fn append(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.require_head(&batch.from);
        if !batch.entries.is_empty() {
            self.insert_heads(&[batch.to.committed()]);
        }
        self.insert(batch)?;
        // After the entries: the trigger requires the clock correction if the time goes back.
        self.move_head(&batch.to);
        self.settle(batch);
        self.insert_signatures(&batch.signatures);
        self.take_effects(batch);
        Ok(())
    }

    /// Breaks a constraint unless this head is in force: only triggers can raise an error of their own.
    fn require_head(&mut self, from: &Head) {
        self.script.add_with(
            "INSERT INTO batch (size) SELECT NULL WHERE NOT EXISTS (
               SELECT 1 FROM log WHERE epoch = ? AND size = ? AND root = ? AND frozen_at IS NULL AND filling IS NULL)",
            |values| {
                values.bind(signed(from.epoch)).bind(signed(from.size().get()));
                values.bind(&from.root().as_bytes()[..]);
            },
        );
        self.end(Broken::OtherHead);
    }

    pub(crate) fn insert_heads(&mut self, heads: &[CommittedHead]) {
        let into = "INSERT INTO batch (batch, size, root, epoch, at) VALUES ";
        self.script.add_rows(into, "(?,?,?,?,?)", "", heads, |values, head| {
            values.bind(signed(head.batch)).bind(signed(head.size.get())).bind(&head.root.as_bytes()[..]);
            values.bind(signed(head.epoch)).bind(signed(head.at));
        });
        self.end(Broken::BeyondTheHead);
    }

    /// Adds entries, the keys that lead to them, and tiles.
    pub(crate) fn insert(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let entries = numbered(batch);
        self.insert_entries(&entries);
        self.insert_look_ups(&entries);
        for tile in &batch.tiles {
            let (first, added) = tile.added(&batch.from)?;
            tiles::extend(&mut self.script, tile, first, added);
        }
        self.end(Broken::BeyondTheHead);
        Ok(())
    }

    fn insert_entries(&mut self, entries: &[(i64, &NewEntry)]) {
        let into = "INSERT INTO entry (idx, digest, policy, rule, facts, statement) VALUES ";
        self.script.add_rows(into, "(?,?,?,?,?,?)", "", entries, |values, (index, entry)| {
            values.bind(*index).bind(&entry.digest.as_bytes()[..]).bind(signed(entry.policy.get()));
            values.bind(entry.rule.as_str()).bind(entry.facts.as_str()).bind(&entry.statement[..]);
        });
        self.end(Broken::BeyondTheHead);
        let collateral: Vec<_> = entries
            .iter()
            .flat_map(|(index, entry)| entry.collateral.iter().map(move |item| (*index, item)))
            .collect();
        let into = "INSERT INTO collateral (idx, kind, bytes) VALUES ";
        self.script.add_rows(into, "(?,?,?)", "", &collateral, |values, (index, item)| {
            values.bind(*index).bind(item.kind).bind(&item.bytes[..]);
        });
        self.end(Broken::Refused);
    }

    fn insert_look_ups(&mut self, entries: &[(i64, &NewEntry)]) {
        let mut seen: Vec<(&EntryDigest, i64)> = entries
            .iter()
            .flat_map(|(index, entry)| {
                std::iter::once(&entry.digest).chain(&entry.twin).map(|key| (key, *index))
            })
            .collect();
        // In the order of the index, so that each of its pages is written once.
        seen.sort_unstable_by_key(|(digest, _)| digest.as_bytes());
        let into = "INSERT INTO seen (key, idx) VALUES ";
        self.script.add_rows(into, "(?,?)", "", &seen, |values, (digest, index)| {
            values.bind(seen_key(digest)).bind(*index);
        });
        self.end(Broken::AlreadySeen);
        let guards: Vec<_> = entries
            .iter()
            .flat_map(|(index, entry)| entry.guards.iter().map(move |key| (key, *index)))
            .collect();
        let into = "INSERT INTO guard (key, idx) VALUES ";
        self.script.add_rows(into, "(?,?)", "", &guards, |values, (key, index)| {
            values.bind(&key.0[..]).bind(*index);
        });
        self.end(Broken::GuardTaken);
    }

    pub(crate) fn move_head(&mut self, to: &Head) {
        self.script.add_with(
            "UPDATE log SET epoch = ?, size = ?, root = ?, edge = ?, batch = ?, at = ?, policy = ?",
            |values| {
                values.bind(signed(to.epoch)).bind(signed(to.size().get())).bind(&to.root().as_bytes()[..]);
                values
                    .bind(to.edge_bytes())
                    .bind(signed(to.batch))
                    .bind(signed(to.at))
                    .bind(signed(to.policy.get()));
            },
        );
        self.end(Broken::Refused);
    }

    fn settle(&mut self, batch: &Batch) {
        let before = "INSERT INTO inbox_outcome (attempt, digest, idx)
             SELECT inbox.attempt, inbox.digest, settled.column2 FROM (VALUES ";
        // SQLite keeps the order of a CROSS JOIN: the settled ones first.
        let after = ") AS settled CROSS JOIN inbox
              WHERE inbox.digest = settled.column1 AND inbox.attempt NOT IN
                (SELECT attempt FROM inbox_outcome WHERE inbox_outcome.digest = settled.column1)";
        self.script.add_rows(before, "(?,?)", after, &batch.settled, |values, (digest, index)| {
            values.bind(&digest.as_bytes()[..]).bind(signed(index.get()));
        });
        self.end(Broken::Refused);
    }

    /// Adds signatures; the first of each kind, key and head stays.
    pub(crate) fn insert_signatures(&mut self, signatures: &[HeadSignature]) {
        for signature in signatures {
            self.script.add_with(
                "INSERT INTO head_signature (size, kind, kid, bytes) VALUES (?, ?, ?, ?)
                 ON CONFLICT (size, kind, kid) DO NOTHING",
                |values| {
                    values.bind(signed(signature.size.get())).bind(signature.kind as u8);
                    values.bind(&signature.kid[..]).bind(&signature.bytes[..]);
                },
            );
            self.end(Broken::UnknownHead(signature.size));
        }
    }

    /// Adds the batch's [`Effect`]s, after its entries and its head.
    fn take_effects(&mut self, batch: &Batch) {
        let at = batch.to.at;
        for effect in &batch.effects {
            match effect {
                Effect::Freeze => end_log(&mut self.script, FROZEN_BY, at),
                Effect::Hold { entry, case } => custody::begin_hold(&mut self.script, *entry, case, at),
                Effect::Release { entry, case } => custody::end_hold(&mut self.script, *entry, case, at),
            }
        }
        self.end(Broken::Refused);
    }

    /// Ends a part of the script.
    fn end(&mut self, broken: Broken) {
        self.parts.push((self.script.statements(), broken));
    }

    /// Returns what the failure of a statement before COMMIT means.
    fn meaning(&self, failure: ScriptFailure) -> CommitError {
        let ScriptFailure { error, statement, .. } = failure;
        let part = self.parts.iter().find(|(end, _)| statement < *end);
        match part {
            Some((_, broken)) if sql::is_constraint(&error) => broken.error(error),
            _ => CommitError::NotCommitted(sql::store_error(error)),
        }
    }
}

impl Broken {
    fn error(self, error: sqlx::Error) -> CommitError {
        CommitError::NotCommitted(match self {
            Self::OtherHead => return CommitError::Fenced,
            Self::AlreadySeen => return CommitError::AlreadySeen,
            Self::GuardTaken => return CommitError::GuardTaken,
            Self::BeyondTheHead => StoreError::Damaged(format!("there are rows beyond the head: {error}")),
            Self::UnknownHead(size) => StoreError::Refused(format!("no head of size {size} was committed")),
            Self::Refused => sql::store_error(error),
        })
    }
}

fn without_a_batch(error: CommitError) -> StoreError {
    match error {
        CommitError::NotCommitted(error) => error,
        other => StoreError::Damaged(other.to_string()),
    }
}

fn numbered(batch: &Batch) -> Vec<(i64, &NewEntry)> {
    batch.entries.iter().zip(batch.from.size().get()..).map(|(entry, index)| (signed(index), entry)).collect()
}
