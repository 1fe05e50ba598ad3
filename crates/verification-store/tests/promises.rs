//! The promises of the store.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use merkle::EntryDigest;
use operation_times::{OperationObserver, StoreOperation};
use tempfile::TempDir;
use verification_store::{
    ChainEnd, DeliveredEntry, JobState, NewJob, NewReceipt, StoreError, VerificationStore,
};

const ISSUER: &str = "did:key:z6Mk";
const AGENT: &str = "did:web:agent.example";

struct Site {
    folder: TempDir,
    store: VerificationStore,
}

impl Site {
    /// A store that knows the empty chain about [`AGENT`].
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = VerificationStore::open(&folder.path().join("v.db")).await.unwrap();
        let empty = ChainEnd { next: 0, last: None, halted: None };
        store.adopt_chain(ISSUER, AGENT, &empty).await.unwrap();
        Self { folder, store }
    }

    async fn job(&self, name: &str) -> String {
        self.store.add_job(&new_job(name)).await.unwrap().id
    }

    /// Signs the receipt of a new job.
    async fn signed(&self, name: &str, position: Option<u64>) -> Result<EntryDigest, StoreError> {
        let job = self.job(name).await;
        let receipt = receipt(name, position);
        self.store.conclude(&job, &receipt).await.map(|()| receipt.id)
    }

    async fn next(&self) -> u64 {
        self.store.chain(ISSUER, AGENT).await.unwrap().unwrap().next
    }

    async fn sendable(&self) -> Vec<EntryDigest> {
        self.store.sendable(10).await.unwrap().into_iter().map(|waiting| waiting.id).collect()
    }

    async fn deliver(&self, id: EntryDigest, at: u64) {
        let receipt = Bytes::from_static(b"receipt");
        self.store.delivered(&[DeliveredEntry { id, receipt, at }]).await.unwrap();
    }
}

/// Why the log refuses the receipt of a job.
async fn refusal(store: &VerificationStore, job: &str) -> Option<String> {
    let JobState::Done(stored) = store.job(job).await.unwrap().unwrap().state else { panic!("done") };
    stored.refused
}

fn new_job(name: &str) -> NewJob {
    NewJob {
        id: format!("job-{name}"),
        client: "c".into(),
        digest: format!("sha256:{name}"),
        subject: None,
        request: Bytes::from_static(b"{}"),
        at: 100,
    }
}

fn receipt(name: &str, position: Option<u64>) -> NewReceipt {
    NewReceipt {
        id: EntryDigest::of(name.as_bytes()),
        issuer: ISSUER.into(),
        subject: if position.is_some() { AGENT.into() } else { format!("urn:x:{name}") },
        position,
        at: 100,
        receipt: Bytes::from_static(b"{}"),
        statement: Bytes::copy_from_slice(name.as_bytes()),
    }
}

#[tokio::test]
async fn a_position_has_one_statement_and_a_refused_one_changes_nothing() {
    let site = Site::new().await;
    site.signed("a", Some(0)).await.unwrap();
    for (name, position) in [("b", 0), ("c", 2)] {
        let refused = site.signed(name, Some(position)).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    }
    assert_eq!(site.next().await, 1);
    let pending = site.store.pending_jobs().await.unwrap();
    assert_eq!(pending.into_iter().map(|job| job.id).collect::<Vec<_>>(), ["job-b", "job-c"]);
    let again = site.store.conclude("job-a", &receipt("d", Some(1))).await;
    assert!(matches!(again, Err(StoreError::Refused(_))), "a job has one statement");
    assert_eq!(site.next().await, 1, "the chain moves only with its statement");
}

#[tokio::test]
async fn a_chain_that_is_known_is_not_adopted_again() {
    let site = Site::new().await;
    let id = site.signed("a", Some(0)).await.unwrap();
    let other = ChainEnd { next: 9, last: Some(EntryDigest::of(b"other")), halted: None };
    site.store.adopt_chain(ISSUER, AGENT, &other).await.unwrap();
    let kept = site.store.chain(ISSUER, AGENT).await.unwrap().unwrap();
    assert_eq!((kept.next, kept.last), (1, Some(id)));
}

#[tokio::test]
async fn a_statement_is_sent_after_its_predecessor_and_a_refused_one_holds_up_its_chain_only() {
    let site = Site::new().await;
    let first = site.signed("a", Some(0)).await.unwrap();
    let second = site.signed("b", Some(1)).await.unwrap();
    let alone = site.signed("c", None).await.unwrap();
    assert_eq!(site.sendable().await, [first, alone]);
    site.store.refused(&first, "no").await.unwrap();
    assert_eq!(site.sendable().await, [alone]);
    assert_eq!(site.store.backlog().await.unwrap(), (2, 1));
    assert_eq!(site.store.retry_refused().await.unwrap(), 1);
    site.deliver(first, 100).await;
    site.deliver(first, 200).await;
    assert_eq!(site.sendable().await, [second, alone]);
}

#[tokio::test]
async fn nothing_of_a_halted_chain_is_signed_or_sent() {
    let site = Site::new().await;
    let first = site.signed("a", Some(0)).await.unwrap();
    site.store.halt_chain(ISSUER, AGENT, "a fork").await.unwrap();
    site.store.halt_chain(ISSUER, AGENT, "another reason").await.unwrap();
    site.store.refused(&first, "no").await.unwrap();
    assert_eq!(site.store.retry_refused().await.unwrap(), 0);
    assert!(site.sendable().await.is_empty());
    assert!(site.signed("b", Some(1)).await.is_err());
    let end = site.store.chain(ISSUER, AGENT).await.unwrap().unwrap();
    assert_eq!((end.halted.as_deref(), site.store.halted_chains().await.unwrap()), (Some("a fork"), 1));
}

#[tokio::test]
async fn all_that_wait_in_a_halted_chain_are_refused_with_its_reason() {
    let site = Site::new().await;
    for (name, position) in [("a", 0), ("b", 1), ("c", 2)] {
        site.signed(name, Some(position)).await.unwrap();
    }
    let alone = site.signed("d", None).await.unwrap();
    let first = site.sendable().await[0];
    site.store.halt_chain(ISSUER, AGENT, "a fork").await.unwrap();
    site.store.refused(&first, "no").await.unwrap();
    for job in ["job-a", "job-b", "job-c"] {
        assert_eq!(refusal(&site.store, job).await.as_deref(), Some("a fork"), "{job}");
    }
    assert_eq!((site.store.backlog().await.unwrap(), site.sendable().await), ((1, 3), vec![alone]));
}

#[tokio::test]
async fn a_request_has_one_job_which_can_fail_and_be_tried_again() {
    let site = Site::new().await;
    let job = site.job("a").await;
    let repeated = site.store.add_job(&NewJob { id: "other".into(), ..new_job("a") }).await.unwrap();
    assert_eq!((&repeated.id, &repeated.state), (&job, &JobState::Pending));
    site.store.fail_job(&job, "code", "why", 100).await.unwrap();
    let failed = JobState::Failed { code: "code".into(), reason: "why".into() };
    assert_eq!(site.store.job(&job).await.unwrap().unwrap().state, failed);
    assert!(site.store.retry_job(&job, b"{}").await.unwrap());
    assert!(!site.store.retry_job(&job, b"{}").await.unwrap(), "it is pending");
    site.store.conclude(&job, &receipt("a", Some(0))).await.unwrap();
    assert!(matches!(site.store.job(&job).await.unwrap().unwrap().state, JobState::Done(_)));
    assert!(!site.store.retry_job(&job, b"{}").await.unwrap(), "it is done");
}

#[tokio::test]
async fn the_same_request_about_another_agent_has_a_job_of_its_own() {
    let site = Site::new().await;
    let job = site.job("a").await;
    let subject = Some(AGENT.to_owned());
    let about_agent = NewJob { id: "other".into(), subject: subject.clone(), ..new_job("a") };
    let added = site.store.add_job(&about_agent).await.unwrap();
    assert_eq!((added.id.as_str(), &added.subject), ("other", &subject));
    for (agent, expected) in
        [(None, Some(job.as_str())), (Some(AGENT), Some("other")), (Some("urn:x:third"), None)]
    {
        let found = site.store.job_of_request("c", "sha256:a", agent).await.unwrap();
        assert_eq!(found.as_ref().map(|job| job.id.as_str()), expected, "{agent:?}");
        assert!(found.is_none_or(|job| job.subject.as_deref() == agent), "{agent:?}");
    }
}

#[tokio::test]
async fn the_text_of_a_request_is_stored_only_while_its_job_is_pending() {
    let site = Site::new().await;
    let job = site.job("a").await;
    let request = async || site.store.begin_checks(&job).await.unwrap();
    assert_eq!(request().await.as_deref(), Some(&b"{}"[..]));
    site.store.fail_job(&job, "code", "why", 100).await.unwrap();
    assert_eq!(request().await, None);
    site.store.retry_job(&job, b"{ }").await.unwrap();
    assert_eq!(request().await.as_deref(), Some(&b"{ }"[..]));
    site.store.conclude(&job, &receipt("a", Some(0))).await.unwrap();
    assert_eq!(request().await, None);
}

#[tokio::test]
async fn jobs_are_read_without_the_texts_of_their_requests() {
    let site = Site::new().await;
    let new = NewJob { request: Bytes::from_static(b"a long text"), ..new_job("a") };
    let added = site.store.add_job(&new).await.unwrap();
    let pending = site.store.pending_jobs().await.unwrap();
    let read = format!("{added:?} {pending:?} {:?}", site.store.job(&new.id).await.unwrap());
    assert!(!read.contains("a long text"), "{read}");
}

#[tokio::test]
async fn a_pending_job_knows_how_often_its_checks_began_and_did_not_end() {
    let site = Site::new().await;
    let job = site.job("a").await;
    let unended = async || site.store.job(&job).await.unwrap().unwrap().unended;
    for expected in [1, 2] {
        assert!(site.store.begin_checks(&job).await.unwrap().is_some());
        assert_eq!(unended().await, expected);
    }
    site.store.end_checks(&job).await.unwrap();
    assert_eq!(unended().await, 0);
    site.store.begin_checks(&job).await.unwrap();
    site.store.end_all_checks().await.unwrap();
    assert_eq!(unended().await, 0);
    site.store.conclude(&job, &receipt("a", Some(0))).await.unwrap();
    assert!(site.store.begin_checks(&job).await.unwrap().is_none(), "it is done");
}

#[tokio::test]
async fn old_results_are_removed_once_delivered_and_the_end_of_the_chain_stays() {
    let site = Site::new().await;
    let first = site.signed("a", Some(0)).await.unwrap();
    site.signed("b", Some(1)).await.unwrap();
    site.deliver(first, 100).await;
    assert_eq!(site.store.prune(100).await.unwrap(), 0, "it is not older");
    assert_eq!(site.store.prune(101).await.unwrap(), 1);
    assert!(site.store.job("job-a").await.unwrap().is_none());
    assert!(site.store.job("job-b").await.unwrap().is_some(), "it waits for the log");
    assert_eq!(site.next().await, 2);
}

#[tokio::test]
async fn a_result_is_kept_from_its_delivery_on() {
    let site = Site::new().await;
    let id = site.signed("a", Some(0)).await.unwrap();
    site.deliver(id, 500).await;
    site.deliver(id, 900).await;
    assert_eq!(site.store.prune(500).await.unwrap(), 0);
    assert_eq!(site.store.prune(501).await.unwrap(), 1);
}

#[tokio::test]
async fn a_failed_job_is_kept_from_its_last_failure_on() {
    let site = Site::new().await;
    let job = site.job("a").await;
    site.store.fail_job(&job, "code", "why", 200).await.unwrap();
    site.store.retry_job(&job, b"{}").await.unwrap();
    assert_eq!(site.store.prune(900).await.unwrap(), 0, "it is pending");
    site.store.fail_job(&job, "code", "why", 500).await.unwrap();
    assert_eq!(site.store.prune(500).await.unwrap(), 0);
    assert_eq!(site.store.prune(501).await.unwrap(), 1);
}

#[tokio::test]
async fn one_process_has_the_database_and_the_next_one_finds_everything() {
    let Site { folder, store } = Site::new().await;
    let path = folder.path().join("v.db");
    let second = VerificationStore::open(&path).await;
    assert!(matches!(second, Err(StoreError::InUse(_))), "{second:?}");
    let job = store.add_job(&new_job("a")).await.unwrap();
    store.conclude(&job.id, &receipt("a", Some(0))).await.unwrap();
    store.close().await;
    drop(store);
    let store = VerificationStore::open(&path).await.unwrap();
    let JobState::Done(stored) = store.job(&job.id).await.unwrap().unwrap().state else { panic!("done") };
    assert_eq!((stored.position, &stored.statement[..]), (Some(0), &b"a"[..]));
}

/// The names of the operations so far, with the classes of their errors.
#[derive(Debug, Default)]
struct Reports(Mutex<Vec<(&'static str, Option<&'static str>)>>);

impl OperationObserver for Reports {
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, _: Duration) {
        self.0.lock().unwrap().push((operation.name, error_type));
    }
}

#[tokio::test]
async fn each_read_and_each_transaction_is_reported_once_with_the_class_of_its_error() {
    let (Site { folder: _folder, store }, reports) = (Site::new().await, Arc::new(Reports::default()));
    let store = store.observed_by(reports.clone());
    let job = store.add_job(&new_job("a")).await.unwrap().id;
    assert!(store.job(&job).await.unwrap().is_some());
    store.conclude(&job, &receipt("a", Some(7))).await.unwrap_err();
    let expected = [("write", None), ("read", None), ("write", Some("refused"))];
    assert_eq!(*reports.0.lock().unwrap(), expected);
}
