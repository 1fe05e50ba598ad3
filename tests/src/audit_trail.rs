//! Audit records of a gateway on a log, and the invariants of a complete audit trail.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::gateway::GATEWAY;
use crate::service::Service;

/// An audit record on a log.
#[derive(Clone, Debug)]
pub struct Record {
    /// Entry ID of the record's statement.
    pub entry: String,
    /// Payload of the record.
    pub payload: Value,
}

impl Record {
    /// Returns the record's `kind`, such as `decision` or `outcome`.
    pub fn kind(&self) -> &str {
        self.payload["kind"].as_str().unwrap_or_default()
    }

    /// Returns `true` for a decision that permits a call (`served` or `downgraded`).
    pub fn permits(&self) -> bool {
        self.kind() == "decision"
            && (self.payload["verdict"] == "served" || self.payload["verdict"] == "downgraded")
    }
}

/// Returns all audit records on a log, in the order of their leaves.
#[track_caller]
pub fn records_of(service: &Service) -> Vec<Record> {
    entries_of(service, "application/vap-audit%2Bjson")
}

/// Returns all execution receipts on a log, in the order of their leaves.
#[track_caller]
pub fn receipts_of(service: &Service) -> Vec<Record> {
    entries_of(service, "application/aer%2Bjson")
}

#[track_caller]
fn entries_of(service: &Service, content_type: &str) -> Vec<Record> {
    let mut connection = service.connection();
    let mut path = format!("/v1/entries?content_type={content_type}&limit=1000");
    let mut records = Vec::new();
    loop {
        let page = connection.get(&path);
        if page.status == 503 {
            // The search index is not built yet.
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        }
        assert_eq!(page.status, 200, "{page:?}");
        for entry in page.json()["entries"].as_array().cloned().unwrap_or_default() {
            let id = entry["entry_id"].as_str().unwrap_or_else(|| panic!("no id: {entry}")).to_owned();
            let payload = connection.get_as_auditor(&format!("/v1/entries/{id}/payload"));
            records.push(Record { entry: id, payload: payload.json() });
        }
        let Some(link) = page.header("link") else { return records };
        let (_, next) = link.split_once("/v1/").expect("a link within the API");
        path = format!("/v1/{}", next.split_once('>').expect("a link").0);
    }
}

/// Returns the records of one kind.
pub fn of_kind<'a>(records: &'a [Record], kind: &str) -> Vec<&'a Record> {
    records.iter().filter(|record| record.kind() == kind).collect()
}

/// Asserts that the audit trail is complete: each stream has every sequence number once, no entry occurs twice, and
/// each permitted call has exactly one outcome.
#[track_caller]
pub fn must_be_whole(records: &[Record]) {
    let mut streams: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut entries = BTreeSet::new();
    for Record { entry, payload } in records {
        let (stream, seq) = (payload["stream"].as_str(), payload["seq"].as_u64());
        streams.entry(stream.expect("a stream")).or_default().push(seq.expect("a number"));
        assert!(entries.insert(entry), "{entry} is there twice");
        assert_eq!(payload["gateway"], GATEWAY);
    }
    for (stream, mut numbers) in streams {
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{stream} has gaps: {numbers:?}");
    }
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in of_kind(records, "outcome") {
        *outcomes.entry(outcome.payload["backLink"].as_str().expect("a decision")).or_default() += 1;
    }
    for decision in records.iter().filter(|record| record.permits()) {
        assert_eq!(outcomes.remove(decision.entry.as_str()), Some(1), "the outcome of {decision:?}");
    }
    assert!(outcomes.is_empty(), "outcomes of what was not let through: {outcomes:?}");
}
