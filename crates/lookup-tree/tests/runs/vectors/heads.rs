//! Schedules and heads.

use data_encoding::HEXLOWER;
use lookup_tree::{HeadRun, IndexHead, RunId, RunSummary, ScheduledRun, schedule};
use merkle::{LeafIndex, TreeSize};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::vectors::ByteEdit;

use super::edited_bytes;

/// The size of a tree.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleCase {
    size: u64,
}

/// Returns the runs that serve a size.
pub fn runs(case: &ScheduleCase) -> Value {
    let run = |run: &ScheduledRun| {
        let [start, end] = [run.leaves.start, run.leaves.end].map(LeafIndex::get);
        json!({ "level": run.id.level, "number": run.id.number, "leaves": [start, end] })
    };
    let runs: Vec<Value> = schedule(TreeSize::new(case.size)).iter().map(run).collect();
    json!({ "size": case.size, "runs": runs })
}

/// A head, sound or not.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadCase {
    head: HeadDocument,
    /// Edits of the encoded head.
    #[serde(default)]
    bytes: Vec<ByteEdit>,
}

/// The members of a head by their names.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadDocument {
    series: String,
    size: u64,
    log_root: String,
    horizon: u64,
    runs: Vec<HeadRunDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadRunDocument {
    level: u8,
    number: u64,
    postings: u64,
    blind: u64,
    root: String,
}

/// Returns a head with the decision about it.
pub fn head(case: &HeadCase) -> Value {
    let bytes = edited_bytes(case.head.head().encode(), &case.bytes);
    let head = IndexHead::decode(&bytes).ok();
    let decided = match head.as_ref().map(IndexHead::scheduled_runs) {
        None => "malformed",
        Some(Err(_)) => "wrong-runs",
        Some(Ok(_)) => "accept",
    };
    json!({
        "head": HEXLOWER.encode(&bytes),
        "expected": decided,
        "contents": head.as_ref().map(contents),
    })
}

fn contents(head: &IndexHead) -> Value {
    let mut contents = json!(HeadDocument::of(head));
    contents["digest"] = head.digest().to_string().into();
    contents
}

impl HeadDocument {
    pub fn of(head: &IndexHead) -> Self {
        Self {
            series: head.series.to_string(),
            size: head.size.get(),
            log_root: head.log_root.to_string(),
            horizon: head.horizon.get(),
            runs: head.runs.iter().map(HeadRunDocument::of).collect(),
        }
    }

    pub fn head(&self) -> IndexHead {
        IndexHead {
            series: self.series.parse().unwrap(),
            size: TreeSize::new(self.size),
            log_root: self.log_root.parse().unwrap(),
            horizon: LeafIndex::new(self.horizon),
            runs: self.runs.iter().map(HeadRunDocument::run).collect(),
        }
    }
}

impl HeadRunDocument {
    fn of(run: &HeadRun) -> Self {
        let HeadRun { id: RunId { level, number }, summary: RunSummary { postings, blind, root } } = *run;
        Self { level, number, postings, blind, root: root.to_string() }
    }

    fn run(&self) -> HeadRun {
        let Self { level, number, postings, blind, ref root } = *self;
        let summary = RunSummary { postings, blind, root: root.parse().unwrap() };
        HeadRun { id: RunId { level, number }, summary }
    }
}
