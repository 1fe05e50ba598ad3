//! Heads of the index: the roots of all runs that serve a tree of n leaves.
//!
//! A head is the payload of a statement that the log registers on itself, in deterministic CBOR (RFC 8949, 4.2.1):
//!
//! ```text
//! { 1: series (32 bytes), 2: n, 3: root of the log at n (32 bytes), 4: horizon,
//!   5: [[level, number, postings, blind postings, root (32 bytes)], ...] }
//! ```
//!
//! [`IndexHead::decode`] reads the form. That the runs are those of the schedule is a separate check, so that a head with
//! other runs can be an exhibit. Not here: the statement and its signature.

use merkle::{Hash, LeafIndex, RootHash, TreeSize};
use scitt::cbor::{self, Value};
use sha2::{Digest, Sha256};

use crate::build::RunSummary;
use crate::limits::{MAX_HEAD_BYTES, MAX_HEAD_RUNS};
use crate::schedule::{RunId, ScheduledRun, schedule};

/// Media type of a head.
pub const HEAD_CONTENT_TYPE: &str = "application/vnd.tabellion.index-head+cbor";

const SERIES: u64 = 1;
const SIZE: u64 = 2;
const LOG_ROOT: u64 = 3;
const HORIZON: u64 = 4;
const RUNS: u64 = 5;

/// Nesting of a head: a map, an array of runs, a run.
const DEPTH: usize = 3;
/// Number of CBOR items of the map and of one run.
const MAP_ITEMS: usize = 11;
const RUN_ITEMS: usize = 6;

/// The committed state of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHead {
    /// Hash of the policy's rules for this index. Heads of other rules belong to another series.
    pub series: Hash,
    /// The number of indexed leaves.
    pub size: TreeSize,
    /// Root of the log at that size.
    pub log_root: RootHash,
    /// Postings of entries that were erased by statements before this leaf are gone. It never goes back.
    pub horizon: LeafIndex,
    /// The runs in the order of their leaves.
    pub runs: Vec<HeadRun>,
}

/// A run in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRun {
    /// Level and number.
    pub id: RunId,
    /// Size and root.
    pub summary: RunSummary,
}

/// Error: bytes that are not a head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// More than [`MAX_HEAD_BYTES`].
    #[error("a head of {0} bytes: at most {MAX_HEAD_BYTES} are read")]
    TooLong(usize),
    /// Not one CBOR item.
    #[error("not CBOR: {0}")]
    Cbor(#[from] cbor::Error),
    /// CBOR of another form.
    #[error("not a head: {expected} is missing or of another form")]
    Form {
        /// What was expected.
        expected: &'static str,
    },
    /// More than [`MAX_HEAD_RUNS`].
    #[error("a head of {0} runs: at most {MAX_HEAD_RUNS} are read")]
    TooManyRuns(usize),
    /// Not the deterministic encoding, or members that a head does not have.
    #[error("not the deterministic encoding of a head")]
    NotDeterministic,
}

/// Error: the runs of a head are not those of the schedule for its size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runs of a head of {size} leaves are {expected:?} in this order, not {given:?}")]
pub struct WrongRuns {
    /// The size of the head.
    pub size: TreeSize,
    /// The runs of the schedule.
    pub expected: Vec<RunId>,
    /// The runs of the head.
    pub given: Vec<RunId>,
}

impl IndexHead {
    /// Returns the deterministic encoding.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = |hash: &[u8; 32]| Value::from(hash.to_vec());
        let run = |run: &HeadRun| {
            let RunSummary { postings, blind, root } = run.summary;
            let numbers = [u64::from(run.id.level), run.id.number, postings, blind].map(Value::from);
            Value::array(numbers.into_iter().chain([bytes(root.as_bytes())]))
        };
        let members = [
            (SERIES, bytes(self.series.as_bytes())),
            (SIZE, self.size.get().into()),
            (LOG_ROOT, bytes(self.log_root.as_bytes())),
            (HORIZON, self.horizon.get().into()),
            (RUNS, Value::array(self.runs.iter().map(run))),
        ];
        Value::map(members.map(|(label, value)| (label.into(), value))).encode()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeadError> {
        if bytes.len() > MAX_HEAD_BYTES {
            return Err(HeadError::TooLong(bytes.len()));
        }
        let limits = cbor::Limits { depth: DEPTH, items: MAP_ITEMS + RUN_ITEMS * MAX_HEAD_RUNS };
        let item = cbor::parse(bytes, limits)?;
        let head = Self::read(&item.value)?;
        if head.encode() != bytes {
            return Err(HeadError::NotDeterministic);
        }
        Ok(head)
    }

    fn read(map: &Value<'_>) -> Result<Self, HeadError> {
        let member = |label: u64| map.get(&Value::from(label)).map(|item| &item.value);
        let runs = member(RUNS).and_then(Value::as_array).ok_or(form("the list of runs (5)"))?;
        if runs.len() > MAX_HEAD_RUNS {
            return Err(HeadError::TooManyRuns(runs.len()));
        }
        Ok(Self {
            series: hash(member(SERIES)).map(Hash::from_bytes).ok_or(form("the series (1)"))?,
            size: number(member(SIZE)).map(TreeSize::new).ok_or(form("the size (2)"))?,
            log_root: hash(member(LOG_ROOT)).map(RootHash::from_bytes).ok_or(form("the log's root (3)"))?,
            horizon: number(member(HORIZON)).map(LeafIndex::new).ok_or(form("the horizon (4)"))?,
            runs: runs.iter().map(|run| read_run(&run.value)).collect::<Option<_>>().ok_or(form("a run"))?,
        })
    }

    /// SHA-256 of the encoding, which monitors attest.
    pub fn digest(&self) -> Hash {
        Hash::from_bytes(Sha256::digest(self.encode()).into())
    }

    /// Returns the runs with their leaves.
    ///
    /// # Errors
    /// Returns [`WrongRuns`] if they are not exactly those of [`schedule`] for this size.
    pub fn scheduled_runs(&self) -> Result<Vec<(ScheduledRun, RunSummary)>, WrongRuns> {
        let expected = schedule(self.size);
        let ids = expected.iter().map(|run| run.id);
        if !ids.clone().eq(self.runs.iter().map(|run| run.id)) {
            let given = self.runs.iter().map(|run| run.id).collect();
            return Err(WrongRuns { size: self.size, expected: ids.collect(), given });
        }
        Ok(expected.into_iter().zip(self.runs.iter().map(|run| run.summary)).collect())
    }
}

fn read_run(run: &Value<'_>) -> Option<HeadRun> {
    let [level, number_in_level, postings, blind, root] = run.as_array()? else { return None };
    let number_of = |item: &cbor::Item<'_>| number(Some(&item.value));
    let level = u8::try_from(number_of(level)?).ok()?;
    let root = Hash::from_bytes(hash(Some(&root.value))?);
    let summary = RunSummary { postings: number_of(postings)?, blind: number_of(blind)?, root };
    Some(HeadRun { id: RunId { level, number: number_of(number_in_level)? }, summary })
}

fn number(value: Option<&Value<'_>>) -> Option<u64> {
    value?.as_u64()
}

fn hash(value: Option<&Value<'_>>) -> Option<[u8; 32]> {
    value?.as_bytes()?.try_into().ok()
}

fn form(expected: &'static str) -> HeadError {
    HeadError::Form { expected }
}
