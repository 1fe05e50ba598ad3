//! The check of heads of the search index against the stored statements.
use std::collections::BTreeSet;

use crate::common::{Place, Site};
use lookup_tree::{HeadRun, IndexHead, Posting, RunSummary, schedule};
use merkle::{CompactRange, Hash, LeafIndex};
use registration::policy::{IndexRules, index_table_digest};
use registration::{Policy, SearchValues, index_head};
use scitt::Signer;
use serde_json::json;
use store::{LogReader, Memory};
use transparency::fsck::heads::{HeadFindings, check_heads};

/// A log with an index whose heads a test makes.
struct IndexedLog {
    store: Memory,
    site: Site,
    rules: IndexRules,
    heads: u64,
}

impl IndexedLog {
    async fn start(entries: u64) -> Self {
        let key = testkit::verifier().public_key().did_key();
        let table = index_table_digest();
        let policy = testkit::policy_toml();
        let policy =
            format!("{policy}\n[index]\ntable = \"sha256:{table}\"\nkeys = [\"{key}\"]\nevery = 1\n");
        let place = Place::new();
        place.write_policy(&policy);
        let store = Memory::new();
        let site = place.start_on(store.clone(), |_| {}).await;
        let rules = Policy::from_toml(&policy).unwrap().contents().index.clone().unwrap();
        for n in 0..entries {
            site.registered(&testkit::opaque(&format!("subject-{n}"), &json!({ "n": n }))).await;
        }
        Self { store, site, rules, heads: 0 }
    }

    /// The right head.
    async fn head(&self) -> IndexHead {
        let size = self.store.head().await.unwrap().size();
        let entries = self.store.entries(LeafIndex::new(0), size.get() as usize).await.unwrap();
        let mut tree = CompactRange::empty();
        let mut postings = BTreeSet::new();
        for entry in entries {
            let statement = scitt::SignedStatement::parse(entry.statement.unwrap()).unwrap();
            let keys = SearchValues::of_statement(&statement, None).keys().into_iter();
            postings.extend(keys.map(|key| Posting { key, leaf: entry.index }));
            tree.append(entry.digest.leaf_hash());
        }
        let postings: Vec<Posting> = postings.into_iter().collect();
        let [run] = schedule(size)[..] else { panic!("{size}: one run") };
        IndexHead {
            series: self.rules.series(),
            size,
            log_root: tree.root(),
            horizon: size.next_leaf(),
            runs: vec![HeadRun { id: run.id, summary: RunSummary::of(&postings).unwrap() }],
        }
    }

    async fn register(&mut self, head: &IndexHead) {
        self.heads += 1;
        let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let log = (testkit::LOG_ISS, testkit::ORIGIN);
        let key = testkit::verifier();
        let head = index_head::sign(head, at + self.heads, log, &self.rules, &key).unwrap();
        self.site.registered(&head).await;
    }

    async fn check(&self) -> HeadFindings {
        let folder = tempfile::tempdir().unwrap();
        check_heads(&self.store, folder.path()).await.unwrap()
    }
}

#[tokio::test]
async fn right_heads_have_no_finding() {
    let mut log = IndexedLog::start(70).await;
    assert_eq!(log.check().await, HeadFindings::default(), "no head yet");
    for heads in 1..3 {
        log.register(&log.head().await).await;
        assert_eq!(log.check().await, HeadFindings { heads, ..HeadFindings::default() });
    }
}

#[tokio::test]
async fn a_wrong_run_of_the_newest_head_is_named_with_its_leaves() {
    let mut log = IndexedLog::start(10).await;
    let mut head = log.head().await;
    head.runs[0].summary.root = Hash::from_bytes([1; 32]);
    log.register(&head).await;
    let findings = log.check().await.findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    let named = format!("index head at leaf 11: run tail of leaves [0, {}): ", head.size);
    assert!(findings[0].starts_with(&named), "{findings:?}");
}

#[tokio::test]
async fn faults_of_the_form_are_found_in_old_heads_too() {
    let mut log = IndexedLog::start(10).await;
    let sound = log.head().await;
    log.register(&IndexHead { log_root: merkle::empty_root(), ..sound }).await;
    log.register(&IndexHead { horizon: LeafIndex::new(1), ..log.head().await }).await;
    log.register(&log.head().await).await;
    let findings = log.check().await.findings;
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].starts_with("index head at leaf 11: it names the root"), "{findings:?}");
    assert!(findings[1].starts_with("index head at leaf 12: its horizon is 1"), "{findings:?}");
}
