//! [`Submission`]: the input of the sequencer, and its encoding in the inbox.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{Collateral, Effect, GuardKey, Head, NewEntry};

use crate::SubmitError;

/// Times at which a decision holds, both ends included. Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// First second of the window.
    pub from: u64,
    /// Last second of the window.
    pub until: u64,
}

impl TimeWindow {
    /// Window of a decision that does not depend on time.
    pub const ALWAYS: Self = Self { from: 0, until: u64::MAX };

    /// Returns whether the decision holds at this time (`from <= at <= until`).
    pub const fn contains(self, at: u64) -> bool {
        self.from <= at && at <= self.until
    }

    /// Seconds until the window opens; `None` if it is open, has closed, or never opens.
    pub const fn opens_in(self, at: u64) -> Option<u64> {
        if at < self.from && self.from <= self.until { Some(self.from - at) } else { None }
    }
}

/// Operator's statement that the log's time was ahead. Its entry comes directly after the head that it names, in a
/// batch of its own, and that batch may carry an earlier time than the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockCorrection {
    /// Size of the newest head.
    pub size: TreeSize,
    /// Time of that head in Unix seconds.
    pub committed_at: u64,
    /// True time in Unix seconds.
    pub time: u64,
}

impl ClockCorrection {
    /// Returns whether this correction names the head.
    pub(crate) fn is_of(&self, head: &Head) -> bool {
        (self.size, self.committed_at) == (head.size(), head.at)
    }
}

/// Admitted statement to be placed in the log, by [`Handle::submit_for`](crate::Handle::submit_for).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Entry to be stored ([`NewEntry`]).
    pub entry: NewEntry,
    /// The decision holds only in a batch whose committed time is in this window.
    pub valid: TimeWindow,
    /// Size that the log must not exceed with the entry; `None` if the decision sets no bound.
    pub largest_tree: Option<TreeSize>,
    /// Index of the policy that was in force at the decision. Zero while the log is empty.
    pub decided_under: LeafIndex,
    /// Digests whose absence from the log the decision relied on.
    pub relied_absent: Vec<EntryDigest>,
    /// Claims that no entry of the log made, on which the decision relied.
    pub relied_free: Vec<GuardKey>,
    /// Data submitted with the statement that is needed to decide it again, but is not stored with the entry.
    pub side_data: Vec<Collateral>,
    /// `true` for a registration policy: it is then the last entry of its batch, and every later
    /// entry must have been decided under it.
    pub is_policy: bool,
    /// The correction, if the statement is one. Such a statement never waits in the inbox.
    pub corrects: Option<ClockCorrection>,
    /// Effect of the entry on other tables, if any. An entry that freezes the log is the last one of its batch and
    /// of the log.
    pub effect: Option<Effect>,
}

/// Error of [`Submission::decode`] for bytes that are not a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a submission: {expected} expected at byte {offset}")]
pub struct UndecodableSubmission {
    /// Position at which reading stopped.
    pub offset: usize,
    /// Description of the expected bytes.
    pub expected: &'static str,
}

/// First byte of the encoding. A later format uses another number.
const VERSION: u8 = 1;
const HAS_TWIN: u8 = 1;
const IS_POLICY: u8 = 2;
const HAS_SIDE_DATA: u8 = 4;
const HAS_RELIED_FREE: u8 = 8;
const HAS_CORRECTION: u8 = 16;
const HAS_EFFECT: u8 = 32;
const HAS_LARGEST_TREE: u8 = 64;
const KNOWN_FLAGS: u8 = 127;

/// Codes of [`Effect`] in the encoding.
const FREEZE: u8 = 1;
const HOLD: u8 = 2;
const RELEASE: u8 = 3;

impl Submission {
    /// Returns whether no other entry may follow this one in its batch.
    pub(crate) fn ends_batch(&self) -> bool {
        self.is_policy || self.corrects.is_some() || self.effect == Some(Effect::Freeze)
    }

    /// Returns whether the entry may be appended to a tree of this size.
    pub(crate) fn may_follow(&self, size: TreeSize) -> bool {
        self.largest_tree.is_none_or(|largest| largest.holds(size.next_leaf()))
    }

    /// Refuses an entry that would make a tree of this size too large.
    pub(crate) fn check_size(&self, size: TreeSize) -> Result<(), SubmitError> {
        match self.largest_tree {
            Some(largest) if !self.may_follow(size) => Err(SubmitError::LogFull { size, largest }),
            _ => Ok(()),
        }
    }

    /// Number of bytes that the submission counts in the queue.
    pub(crate) fn weight(&self) -> usize {
        let guards: usize = self.entry.guards.iter().chain(&self.relied_free).map(|key| key.0.len()).sum();
        let side_data = self.entry.collateral.iter().chain(&self.side_data);
        let collateral: usize = side_data.map(|item| item.bytes.len()).sum();
        let strings = self.entry.rule.len() + self.entry.facts.len();
        self.entry.statement.len() + collateral + guards + strings + self.relied_absent.len() * 32
    }

    /// Encodes the submission for the inbox: fixed-width numbers, big-endian, and length-prefixed strings.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.weight() + 128);
        out.push(VERSION);
        out.push(self.flags());
        out.extend_from_slice(self.entry.digest.as_bytes());
        out.extend(self.entry.twin.iter().flat_map(EntryDigest::as_bytes));
        for number in [self.entry.policy.get(), self.decided_under.get(), self.valid.from, self.valid.until] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for string in [&self.entry.statement[..], self.entry.rule.as_bytes(), self.entry.facts.as_bytes()] {
            put_string(&mut out, string);
        }
        put_guards(&mut out, &self.entry.guards);
        put_collateral(&mut out, &self.entry.collateral);
        put_count(&mut out, self.relied_absent.len());
        out.extend(self.relied_absent.iter().flat_map(EntryDigest::as_bytes));
        if !self.side_data.is_empty() {
            put_collateral(&mut out, &self.side_data);
        }
        if !self.relied_free.is_empty() {
            put_guards(&mut out, &self.relied_free);
        }
        if let Some(ClockCorrection { size, committed_at, time }) = self.corrects {
            [size.get(), committed_at, time].iter().for_each(|number| out.extend(number.to_be_bytes()));
        }
        if let Some(effect) = &self.effect {
            put_effect(&mut out, effect);
        }
        if let Some(largest) = self.largest_tree {
            out.extend(largest.get().to_be_bytes());
        }
        out.into()
    }

    fn flags(&self) -> u8 {
        let set = |flag, holds| if holds { flag } else { 0 };
        set(HAS_TWIN, self.entry.twin.is_some())
            | set(IS_POLICY, self.is_policy)
            | set(HAS_SIDE_DATA, !self.side_data.is_empty())
            | set(HAS_RELIED_FREE, !self.relied_free.is_empty())
            | set(HAS_CORRECTION, self.corrects.is_some())
            | set(HAS_EFFECT, self.effect.is_some())
            | set(HAS_LARGEST_TREE, self.largest_tree.is_some())
    }

    /// Decodes the output of [`encode`](Self::encode), and accepts nothing else.
    pub fn decode(bytes: &Bytes) -> Result<Self, UndecodableSubmission> {
        let mut input = SubmissionReader { bytes, offset: 0 };
        if input.byte("a known version")? != VERSION {
            return Err(UndecodableSubmission { offset: 0, expected: "version 1" });
        }
        let flags = input.byte("flags")?;
        if flags & !KNOWN_FLAGS != 0 {
            return Err(UndecodableSubmission { offset: 1, expected: "known flags" });
        }
        let submission = input.submission(flags)?;
        match input.offset == bytes.len() {
            true => Ok(submission),
            false => Err(input.missing("the end")),
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_be_bytes());
}

fn put_guards(out: &mut Vec<u8>, guards: &[GuardKey]) {
    put_count(out, guards.len());
    guards.iter().for_each(|key| put_string(out, &key.0));
}

fn put_collateral(out: &mut Vec<u8>, collateral: &[Collateral]) {
    put_count(out, collateral.len());
    for item in collateral {
        out.push(item.kind);
        put_string(out, &item.bytes);
    }
}

fn put_effect(out: &mut Vec<u8>, effect: &Effect) {
    let (kind, held) = match effect {
        Effect::Freeze => (FREEZE, None),
        Effect::Hold { entry, case } => (HOLD, Some((entry, case))),
        Effect::Release { entry, case } => (RELEASE, Some((entry, case))),
    };
    out.push(kind);
    if let Some((entry, case)) = held {
        out.extend(entry.get().to_be_bytes());
        put_string(out, case.as_bytes());
    }
}

fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_count(out, string.len());
    out.extend_from_slice(string);
}

struct SubmissionReader<'a> {
    bytes: &'a Bytes,
    offset: usize,
}

impl SubmissionReader<'_> {
    fn submission(&mut self, flags: u8) -> Result<Submission, UndecodableSubmission> {
        let digest = self.digest()?;
        let twin = (flags & HAS_TWIN != 0).then(|| self.digest()).transpose()?;
        let policy = LeafIndex::new(self.number()?);
        let decided_under = LeafIndex::new(self.number()?);
        let valid = TimeWindow { from: self.number()?, until: self.number()? };
        let statement = self.string("a statement")?;
        let (rule, facts) = (self.text("a rule name")?, self.text("facts")?);
        let guards = self.list(Self::guard)?;
        let collateral = self.list(Self::collateral)?;
        let relied_absent = self.list(Self::digest)?;
        let side_data = self.list_if(flags & HAS_SIDE_DATA != 0, "collateral", Self::collateral)?;
        let relied_free = self.list_if(flags & HAS_RELIED_FREE != 0, "a guard key", Self::guard)?;
        let corrects = (flags & HAS_CORRECTION != 0).then(|| self.correction()).transpose()?;
        let effect = (flags & HAS_EFFECT != 0).then(|| self.effect()).transpose()?;
        let largest_tree = (flags & HAS_LARGEST_TREE != 0).then(|| self.number()).transpose()?;
        let entry = NewEntry { digest, twin, statement, policy, rule, facts, guards, collateral };
        let is_policy = flags & IS_POLICY != 0;
        Ok(Submission {
            entry,
            valid,
            largest_tree: largest_tree.map(TreeSize::new),
            decided_under,
            relied_absent,
            relied_free,
            side_data,
            is_policy,
            corrects,
            effect,
        })
    }

    fn effect(&mut self) -> Result<Effect, UndecodableSubmission> {
        let offset = self.offset;
        let kind = self.byte("a kind of effect")?;
        if kind == FREEZE {
            return Ok(Effect::Freeze);
        }
        let (entry, case) = (LeafIndex::new(self.number()?), self.text("the name of a case")?);
        match kind {
            HOLD => Ok(Effect::Hold { entry, case }),
            RELEASE => Ok(Effect::Release { entry, case }),
            _ => Err(UndecodableSubmission { offset, expected: "a known kind of effect" }),
        }
    }

    fn correction(&mut self) -> Result<ClockCorrection, UndecodableSubmission> {
        let size = TreeSize::new(self.number()?);
        Ok(ClockCorrection { size, committed_at: self.number()?, time: self.number()? })
    }

    /// Reads a list that is present only if it is not empty.
    fn list_if<T>(
        &mut self,
        there: bool,
        expected: &'static str,
        item: impl Fn(&mut Self) -> Result<T, UndecodableSubmission>,
    ) -> Result<Vec<T>, UndecodableSubmission> {
        let offset = self.offset;
        match there.then(|| self.list(item)).transpose()? {
            None => Ok(Vec::new()),
            Some(items) if items.is_empty() => Err(UndecodableSubmission { offset, expected }),
            Some(items) => Ok(items),
        }
    }

    fn guard(&mut self) -> Result<GuardKey, UndecodableSubmission> {
        self.string("a guard key").map(|key| GuardKey(key.into()))
    }

    fn collateral(&mut self) -> Result<Collateral, UndecodableSubmission> {
        Ok(Collateral { kind: self.byte("a kind of collateral")?, bytes: self.string("collateral")? })
    }

    fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, UndecodableSubmission>,
    ) -> Result<Vec<T>, UndecodableSubmission> {
        // No capacity is reserved: the count comes from a database, and each item must be present to be read.
        (0..self.count("a count")?).map(|_| item(self)).collect()
    }

    fn text(&mut self, expected: &'static str) -> Result<String, UndecodableSubmission> {
        let offset = self.offset;
        String::from_utf8(self.string(expected)?.into())
            .map_err(|_| UndecodableSubmission { offset, expected })
    }

    fn string(&mut self, expected: &'static str) -> Result<Bytes, UndecodableSubmission> {
        let length = self.count(expected)? as usize;
        self.take(length, expected)
    }

    fn digest(&mut self) -> Result<EntryDigest, UndecodableSubmission> {
        self.array("a digest").map(EntryDigest::from_bytes)
    }

    fn number(&mut self) -> Result<u64, UndecodableSubmission> {
        self.array("a number").map(u64::from_be_bytes)
    }

    fn count(&mut self, expected: &'static str) -> Result<u32, UndecodableSubmission> {
        self.array(expected).map(u32::from_be_bytes)
    }

    fn byte(&mut self, expected: &'static str) -> Result<u8, UndecodableSubmission> {
        self.array::<1>(expected).map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], UndecodableSubmission> {
        let mut array = [0; N];
        array.copy_from_slice(&self.take(N, expected)?);
        Ok(array)
    }

    fn take(&mut self, length: usize, expected: &'static str) -> Result<Bytes, UndecodableSubmission> {
        let end = self.offset.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.missing(expected))?;
        let taken = self.bytes.slice(self.offset..end);
        self.offset = end;
        Ok(taken)
    }

    fn missing(&self, expected: &'static str) -> UndecodableSubmission {
        UndecodableSubmission { offset: self.offset, expected }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    fn digest() -> impl Strategy<Value = EntryDigest> {
        any::<[u8; 32]>().prop_map(EntryDigest::from_bytes)
    }

    fn collateral() -> impl Strategy<Value = Vec<Collateral>> {
        vec((any::<u8>(), bytes()).prop_map(|(kind, bytes)| Collateral { kind, bytes }), 0..4)
    }

    fn guards() -> impl Strategy<Value = Vec<GuardKey>> {
        vec(vec(any::<u8>(), 0..9).prop_map(GuardKey), 0..4)
    }

    fn entry() -> impl Strategy<Value = NewEntry> {
        let guards = guards();
        let fixed = (digest(), proptest::option::of(digest()), bytes(), any::<u64>());
        (fixed, "\\PC{0,20}", "\\PC{0,20}", guards, collateral()).prop_map(
            |((digest, twin, statement, policy), rule, facts, guards, collateral)| NewEntry {
                digest,
                twin,
                statement,
                policy: LeafIndex::new(policy),
                rule,
                facts,
                guards,
                collateral,
            },
        )
    }

    fn submission() -> impl Strategy<Value = Submission> {
        let window = (any::<u64>(), any::<u64>()).prop_map(|(from, until)| TimeWindow { from, until });
        let bounds = (window, proptest::option::of(any::<u64>()));
        let relied = (vec(digest(), 0..4), guards());
        let corrects = proptest::option::of(any::<(u64, u64, u64)>());
        let effect = prop_oneof![
            Just(None),
            Just(Some(Effect::Freeze)),
            (any::<u64>(), "\\PC{0,9}")
                .prop_map(|(n, case)| Some(Effect::Hold { entry: LeafIndex::new(n), case })),
            (any::<u64>(), "\\PC{0,9}")
                .prop_map(|(n, case)| Some(Effect::Release { entry: LeafIndex::new(n), case })),
        ];
        let flags = (any::<bool>(), corrects, effect);
        (entry(), bounds, any::<u64>(), relied, collateral(), flags).prop_map(
            |(
                entry,
                (valid, largest),
                decided_under,
                (relied_absent, relied_free),
                side_data,
                (is_policy, corrects, effect),
            )| {
                Submission {
                    entry,
                    valid,
                    largest_tree: largest.map(TreeSize::new),
                    decided_under: LeafIndex::new(decided_under),
                    relied_absent,
                    relied_free,
                    side_data,
                    is_policy,
                    corrects: corrects.map(|(size, committed_at, time)| ClockCorrection {
                        size: TreeSize::new(size),
                        committed_at,
                        time,
                    }),
                    effect,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_what_is_read(submission in submission()) {
            prop_assert_eq!(Submission::decode(&submission.encode()), Ok(submission));
        }

        #[test]
        fn what_is_cut_short_or_too_long_is_refused(submission in submission()) {
            let good = submission.encode();
            for end in 0..good.len() {
                let error = Submission::decode(&good.slice(..end)).unwrap_err();
                prop_assert!(error.offset <= end);
            }
            let long = Bytes::from([&good[..], &[0]].concat());
            prop_assert_eq!(Submission::decode(&long).unwrap_err().offset, good.len());
        }

        #[test]
        fn what_reads_after_a_change_is_written_back_the_same(
            submission in submission(), at in any::<prop::sample::Index>(), flip in 1u8..,
        ) {
            let mut bad = submission.encode().to_vec();
            let at = at.index(bad.len());
            bad[at] ^= flip;
            let bad = Bytes::from(bad);
            if let Ok(read) = Submission::decode(&bad) {
                prop_assert_eq!(read.encode(), bad);
            }
        }

        #[test]
        fn nothing_makes_the_reader_panic(garbage in vec(any::<u8>(), 0..300)) {
            let _ = Submission::decode(&Bytes::from(garbage));
        }
    }

    #[test]
    fn another_version_and_unknown_flags_are_refused_by_their_offset() {
        for (garbage, offset) in [(&[2u8, 0][..], 0), (&[1, 128], 1), (&[1], 1), (&[], 0)] {
            assert_eq!(Submission::decode(&Bytes::from(garbage)).unwrap_err().offset, offset);
        }
    }
}
