//! Rows that somebody with the file changed, and the finding that names each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use audit::{AuditReport, LogRule};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use store_sqlite::{Settings, Sqlite};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::clean::audited;
use crate::log::Log;
use crate::mixed::{KINDS, Mixer};

/// Batches of the log, after the one with entry 0, each of two statements of every kind.
pub const BATCHES: u64 = 4;
/// The batch whose last entry is a second policy.
pub const SECOND_POLICY: u64 = 2;

/// What is asked of a database that was edited.
struct Edited {
    report: AuditReport,
    _folder: TempDir,
}

impl Edited {
    /// The rules of the findings of a leaf, in order.
    fn of_leaf(&self, leaf: u64) -> Vec<LogRule> {
        let own = self.report.findings.iter().filter(|finding| finding.leaf == Some(leaf));
        own.map(|finding| finding.rule).collect()
    }

    /// Expects these findings of one leaf, and none of anything else.
    fn expect_only(&self, leaf: u64, rules: &[LogRule]) {
        assert_eq!(self.of_leaf(leaf), rules, "{:#?}", self.report.findings);
        assert_eq!(self.report.findings.len(), rules.len(), "{:#?}", self.report.findings);
    }

    /// Expects that the leaf, and no other, is named, by this rule among others.
    fn expect_named(&self, leaf: u64, rule: LogRule) {
        assert!(self.of_leaf(leaf).contains(&rule), "{:#?}", self.report.findings);
        let others = self.report.findings.iter().filter(|it| it.leaf.is_some_and(|other| other != leaf));
        assert_eq!(others.count(), 0, "{:#?}", self.report.findings);
    }

    fn expect_of_batch(&self, batch: u64, rule: LogRule) {
        let [finding] = &self.report.findings[..] else { panic!("{:#?}", self.report.findings) };
        assert_eq!((finding.batch, finding.rule), (Some(batch), rule));
    }
}

/// A mixed log in a file, made once for all tests of this process. Closed: it can be copied.
pub async fn pristine() -> &'static Path {
    static FILE: OnceCell<(PathBuf, TempDir)> = OnceCell::const_new();
    let make = || async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let store = Sqlite::open(Settings::new(&path)).await.unwrap();
        let mut mixer = Mixer::default();
        let mut log = Log::under(Arc::new(store.clone()), &mixer.policy()).await;
        for batch in 1..=BATCHES {
            let mut drafts = mixer.batch(KINDS as usize * 2);
            if batch == SECOND_POLICY {
                drafts.push(
                    log.revised(&(mixer.toml() + "\n# another\n[[type]]\ncontent_type = \"text/html\"\n"))
                        .into(),
                );
            }
            log.register(drafts).await;
        }
        drop(log);
        store.close().await;
        (path, folder)
    };
    &FILE.get_or_init(make).await.0
}

/// The leaf of the second policy.
pub fn second_policy() -> u64 {
    1 + SECOND_POLICY * KINDS * 2
}

/// What somebody with the file can do: no triggers, no foreign keys. Answers how many rows each statement changed.
pub async fn by_hand(path: &Path, statements: &[String]) -> Vec<u64> {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
    let triggers: Vec<String> = sqlx::query_scalar(triggers).fetch_all(&pool).await.unwrap();
    for name in triggers {
        sqlx::query(AssertSqlSafe(format!("DROP TRIGGER {name}"))).execute(&pool).await.unwrap();
    }
    let mut changed = Vec::new();
    for statement in statements {
        let done = sqlx::query(AssertSqlSafe(statement.clone())).execute(&pool).await;
        changed.push(done.unwrap_or_else(|why| panic!("{statement}: {why}")).rows_affected());
    }
    pool.close().await;
    changed
}

/// A copy of the pristine log, to be edited.
pub async fn copy() -> (PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    std::fs::copy(pristine().await, &path).unwrap();
    (path, folder)
}

pub async fn audited_file(path: &Path) -> AuditReport {
    let store = Sqlite::open_read_only(Settings::new(path)).await.unwrap();
    let report = audited(&store).await;
    store.close().await;
    report
}

async fn after<S: AsRef<str>>(statements: &[S]) -> Edited {
    let (path, folder) = copy().await;
    let statements: Vec<String> = statements.iter().map(|it| it.as_ref().to_owned()).collect();
    for (statement, changed) in statements.iter().zip(by_hand(&path, &statements).await) {
        assert!(changed > 0, "{statement}");
    }
    Edited { report: audited_file(&path).await, _folder: folder }
}

/// A leaf that holds a statement of the `kind`th kind ([`Mixer`]), in the third batch.
fn leaf(kind: u64) -> u64 {
    let first = second_policy() + 1;
    (first..).find(|leaf| number(*leaf) % KINDS == kind).unwrap()
}

/// The mixer's number of a leaf that is not a policy.
pub fn number(leaf: u64) -> u64 {
    if leaf > second_policy() { leaf - 1 } else { leaf }
}

#[tokio::test]
async fn an_untouched_file_is_clean() {
    let edited = after::<&str>(&[]).await;
    assert_eq!(edited.report.findings, []);
    assert_eq!(edited.report.counts.entries, 2 + BATCHES * KINDS * 2);
    let explained: Vec<_> =
        edited.report.explained.iter().map(|(leaf, it)| (leaf.get(), it.entries)).collect();
    assert_eq!(
        explained,
        [(0, 4), (second_policy(), 4)],
        "payloads dropped, by the policy that was in force"
    );
}

#[tokio::test]
async fn a_statement_that_was_changed_is_named() {
    let leaf = leaf(1);
    let flip = format!(
        "UPDATE entry SET statement = substr(statement, 1, 60) || x'00' || substr(statement, 62) WHERE idx = {leaf}"
    );
    let flip = flip.replace("substr(statement, 1, 60) ||", "CAST(substr(statement, 1, 60) ||");
    let flip = flip.replace("substr(statement, 62)", "substr(statement, 62) AS BLOB)");
    after(&[flip]).await.expect_only(leaf, &[LogRule::StatementDigest]);
}

#[tokio::test]
async fn a_digest_that_was_changed_is_named() {
    let leaf = leaf(1);
    let edited = after(&[format!("UPDATE entry SET digest = randomblob(32) WHERE idx = {leaf}")]).await;
    // Its ID leads nowhere, its twin to another entry than it says it is, and the tree was made of another.
    edited.expect_named(leaf, LogRule::StatementDigest);
    assert!(edited.of_leaf(leaf).contains(&LogRule::Leaf) && edited.of_leaf(leaf).contains(&LogRule::LookUp));
}

#[tokio::test]
async fn a_statement_that_was_changed_with_its_digest_is_named() {
    let (leaf, other) = (leaf(1), testkit::opaque("forged", &serde_json::json!("never sent")));
    let bytes = data_encoding::HEXLOWER.encode(other.bytes());
    let digest = other.digest();
    let update = format!("UPDATE entry SET digest = x'{digest}', statement = x'{bytes}' WHERE idx = {leaf}");
    let edited = after(&[update]).await;
    edited.expect_named(leaf, LogRule::Leaf);
}

#[tokio::test]
async fn a_rule_a_policy_and_facts_that_were_changed_are_named() {
    let leaf = leaf(2);
    let edit = |what: &str| [format!("UPDATE entry SET {what} WHERE idx = {leaf}")];
    after(&edit("rule = 'application/json'")).await.expect_only(leaf, &[LogRule::RuleDiffers]);
    after(&edit("policy = 0")).await.expect_only(leaf, &[LogRule::PolicyNotInForce]);
    after(&edit(&format!("policy = {}", leaf - 1))).await.expect_only(leaf, &[LogRule::PolicyNotInForce]);
    let edited = after(&edit("facts = '{\"decision\":\"deny\"}'")).await;
    edited.expect_only(leaf, &[LogRule::FactsDiffer]);
    assert!(edited.report.findings[0].detail.contains("deny"), "{}", edited.report.findings[0]);
    after(&edit("facts = facts || ' '")).await.expect_only(leaf, &[LogRule::FactsDiffer]);
}

/// Whether the log had the predecessor of a receipt is a result of the decision: the receipt does not say it.
#[tokio::test]
async fn a_result_of_the_decision_that_was_changed_or_taken_away_is_named() {
    let leaf = leaf(12);
    let edit = |what: &str| [format!("UPDATE entry SET {what} WHERE idx = {leaf}")];
    let edited = after(&edit("facts = json_set(facts, '$.chain_verified', 'forged')")).await;
    edited.expect_only(leaf, &[LogRule::FactsDiffer]);
    assert!(edited.report.findings[0].detail.contains("forged"), "{}", edited.report.findings[0]);
    after(&edit("facts = '{}'")).await.expect_only(leaf, &[LogRule::FactsDiffer]);
}

/// Its payload was never kept, so nothing of it can be read again but the header.
#[tokio::test]
async fn a_row_without_payload_that_names_a_rule_of_another_type_is_named() {
    let leaf = leaf(7);
    let edit = |what: &str| [format!("UPDATE entry SET {what} WHERE idx = {leaf}")];
    after(&edit("rule = 'application/json'")).await.expect_only(leaf, &[LogRule::RuleDiffers]);
    after(&edit("rule = 'policy'")).await.expect_only(leaf, &[LogRule::RuleDiffers]);
    after(&edit("rule = 'nobody wrote this'")).await.expect_only(leaf, &[LogRule::RuleDiffers]);
}

#[tokio::test]
async fn collateral_that_was_changed_or_taken_away_is_named() {
    let (chain, payload) = (leaf(8), leaf(6));
    let edit = |what: &str, leaf| [format!("{what} WHERE idx = {leaf}")];
    let other = "UPDATE collateral SET bytes = zeroblob(10)";
    after(&edit(other, chain)).await.expect_only(chain, &[LogRule::Collateral]);
    after(&edit("DELETE FROM collateral", chain)).await.expect_only(chain, &[LogRule::Collateral]);
    let edited = after(&edit(other, payload)).await;
    edited.expect_only(payload, &[LogRule::Refused]);
    assert!(edited.report.findings[0].detail.starts_with("signature"), "{}", edited.report.findings[0]);
    after(&edit("DELETE FROM collateral", payload))
        .await
        .expect_only(payload, &[LogRule::PayloadUnexplained]);
}

#[tokio::test]
async fn a_claim_that_was_taken_away_or_given_to_another_is_named() {
    let leaf = leaf(2);
    let deleted = after(&[format!("DELETE FROM guard WHERE idx = {leaf}")]).await;
    deleted.expect_only(leaf, &[LogRule::GuardMissing]);
    let given = after(&[format!("UPDATE guard SET idx = {} WHERE idx = {leaf}", leaf + 1)]).await;
    given.expect_only(leaf, &[LogRule::GuardMissing]);
    assert!(given.report.findings[0].detail.contains(&format!("leaf {}", leaf + 1)));
}

#[tokio::test]
async fn an_id_that_leads_elsewhere_is_named() {
    let leaf = leaf(1);
    let own = format!("key = (SELECT substr(digest, 1, 16) FROM entry WHERE idx = {leaf})");
    after(&[format!("DELETE FROM seen WHERE {own}")]).await.expect_only(leaf, &[LogRule::LookUp]);
    after(&[format!("UPDATE seen SET idx = 1 WHERE {own}")]).await.expect_only(leaf, &[LogRule::LookUp]);
    after(&[format!("UPDATE seen SET idx = 4000 WHERE {own}")]).await.expect_only(leaf, &[LogRule::LookUp]);
    let twin = after(&[format!("DELETE FROM seen WHERE idx = {leaf} AND NOT {own}")]).await;
    twin.expect_only(leaf, &[LogRule::Twin]);
}

#[tokio::test]
async fn two_rows_that_were_swapped_are_both_named() {
    let (one, other) = (leaf(1), leaf(2));
    let edited = after(&[
        format!("UPDATE entry SET idx = -1 WHERE idx = {one}"),
        format!("UPDATE entry SET idx = {one} WHERE idx = {other}"),
        format!("UPDATE entry SET idx = {other} WHERE idx = -1"),
    ])
    .await;
    for leaf in [one, other] {
        assert!(edited.of_leaf(leaf).contains(&LogRule::Leaf), "{:#?}", edited.report.findings);
    }
    assert!(edited.report.findings.iter().all(|it| [Some(one), Some(other)].contains(&it.leaf)));
}

#[tokio::test]
async fn a_row_that_is_gone_is_named() {
    let leaf = leaf(3);
    let deleted = after(&[format!("DELETE FROM entry WHERE idx = {leaf}")]).await;
    deleted.expect_only(leaf, &[LogRule::EntryLost]);
    let facts = r#"{"verifier":"somebody"}"#;
    let emptied =
        after(&[format!("UPDATE entry SET statement = NULL, facts = '{facts}' WHERE idx = {leaf}")]).await;
    emptied.expect_only(leaf, &[LogRule::FactsDiffer, LogRule::ErasedUnexplained]);
    let emptied =
        after(&[format!("UPDATE entry SET statement = NULL, facts = '{{}}' WHERE idx = {leaf}")]).await;
    emptied.expect_only(leaf, &[LogRule::ErasedUnexplained]);
    assert_eq!(emptied.report.counts.erased, 1);
}

#[tokio::test]
async fn a_policy_that_is_gone_is_named_and_what_it_admitted_is_not_accused() {
    let leaf = second_policy();
    let edited =
        after(&[format!("UPDATE entry SET statement = NULL, facts = '{{}}' WHERE idx = {leaf}")]).await;
    edited.expect_only(leaf, &[LogRule::PolicyLost, LogRule::ErasedUnexplained]);
    assert_eq!(edited.report.counts.without_policy, (BATCHES - SECOND_POLICY) * KINDS * 2);
    let first = after(&["UPDATE entry SET statement = NULL WHERE idx = 0"]).await;
    first.expect_only(0, &[LogRule::PolicyLost, LogRule::ErasedUnexplained]);
}

#[tokio::test]
async fn a_policy_that_was_made_milder_is_named() {
    let leaf = second_policy();
    let milder = "UPDATE entry SET statement = CAST(replace(statement, '\"did\":{\"jwk\":\"open\"', '\"did\":{\"jwk\":\"OPEN\"') AS BLOB) WHERE idx = ";
    after(&[format!("{milder}{leaf}")]).await.expect_named(leaf, LogRule::StatementDigest);
}

#[tokio::test]
async fn the_time_of_a_batch_that_was_changed_is_named() {
    let edited = after(&["UPDATE batch SET at = at - 1 WHERE batch = 3".to_owned()]).await;
    edited.expect_of_batch(3, LogRule::HeadSigned);
    // Early enough, and what it admitted was not valid yet.
    let edited = after(&["UPDATE batch SET at = 1000 WHERE batch = 1".to_owned()]).await;
    edited.expect_of_batch(1, LogRule::HeadSigned);
    let edited = after(&["UPDATE batch SET at = 1000 WHERE batch = 2".to_owned()]).await;
    let rules: Vec<LogRule> = edited.report.findings.iter().map(|finding| finding.rule).collect();
    assert!(
        rules.contains(&LogRule::HeadSigned)
            && rules.contains(&LogRule::History)
            && rules.contains(&LogRule::Time)
    );
}

#[tokio::test]
async fn a_root_a_signature_and_a_gap_in_the_history_are_named() {
    after(&["UPDATE batch SET root = zeroblob(32) WHERE batch = 3"]).await.report.findings.iter().for_each(
        |finding| {
            assert_eq!(finding.batch, Some(3));
            assert!([LogRule::Root, LogRule::HeadSigned].contains(&finding.rule), "{finding}");
        },
    );
    let forged = "UPDATE head_signature SET bytes = CAST(substr(bytes, 1, length(bytes) - 1)
                  || CASE substr(bytes, -1) WHEN x'00' THEN x'01' ELSE x'00' END AS BLOB)
                  WHERE size = (SELECT size FROM batch WHERE batch = 4)";
    after(&[forged]).await.expect_of_batch(4, LogRule::HeadSigned);
    after(&["DELETE FROM batch WHERE batch = 2"]).await.expect_named_batch(2);
    after(&["UPDATE batch SET size = 0 WHERE batch = 1"]).await.expect_named_batch(1);
    let last = BATCHES + 1;
    after(&[format!("DELETE FROM batch WHERE batch = {last}")]).await.expect_named_batch(last);
    let edited = after(&["UPDATE log SET policy = 0"]).await;
    assert_eq!(edited.report.findings[0].rule, LogRule::HeadPolicy);
}

impl Edited {
    fn expect_named_batch(&self, batch: u64) {
        let named = |it: &audit::AuditFinding| it.batch == Some(batch) && it.rule == LogRule::History;
        assert!(self.report.findings.iter().any(named), "{:#?}", self.report.findings);
    }
}

#[tokio::test]
async fn a_leaf_that_was_changed_in_its_tile_is_named() {
    let leaf = leaf(1);
    let flip = format!(
        "UPDATE tile SET data = CAST(substr(data, 1, 32 * ({leaf} - first)) || zeroblob(32) ||
                                     substr(data, 32 * ({leaf} - first) + 33) AS BLOB)
          WHERE level = 0 AND first <= {leaf} AND {leaf} < first + length(data) / 32"
    );
    let edited = after(&[flip]).await;
    assert_eq!(edited.of_leaf(leaf), [LogRule::Leaf]);
    let lost = after(&["DELETE FROM tile WHERE level = 0"]).await;
    assert_eq!(lost.of_leaf(leaf), [LogRule::TileLost]);
}
