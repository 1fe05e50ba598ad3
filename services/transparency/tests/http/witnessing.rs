//! Witnesses on real sockets: who is shown what, what is served, and what stops the log.

use std::time::Duration;

use crate::common::witness::{Manner, TestWitness, k_of, policy};
use crate::common::{Place, Site, backup_with_signatures, refusal, statement};
use merkle::{RootHash, TreeSize};
use sequencer::Role;
use serde_json::json;
use store::{
    Cosignature, Cosignatures, FailingStore, Lifecycle, LogReader, Memory, SignatureKind, SignatureStore,
    StoreMethod,
};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;
use tlog::policy::WitnessPolicy;
use tlog::witness::AddCheckpoint;
use transparency::{Config, Halt, WitnessConfig};

/// Rounds follow each other fast enough for a test.
fn witnessed_by(policy: &WitnessPolicy) -> impl FnOnce(&mut Config) {
    let policy = Some(policy.clone());
    |config| {
        let (every, pace) = (Duration::from_secs(1), Duration::from_millis(100));
        config.witnesses = WitnessConfig { policy, every, pace };
    }
}

/// A log over this database that these witnesses know.
async fn start(place: &Place, memory: &Memory, policy: &WitnessPolicy, witnesses: &[&TestWitness]) -> Site {
    let key = place.checkpoint_key().to_string();
    witnesses.iter().for_each(|witness| witness.knows(&key));
    place.start_on(memory.clone(), witnessed_by(policy)).await
}

/// The checkpoint served, if there is one, with who cosigned it according to the policy.
async fn served(site: &Site, policy: &WitnessPolicy) -> Option<(u64, Vec<String>)> {
    let answer = site.get("/checkpoint").await;
    if answer.status != 200 {
        return None;
    }
    Some(read(site, policy, &answer.body))
}

fn read(site: &Site, policy: &WitnessPolicy, note: &[u8]) -> (u64, Vec<String>) {
    let key = site.service.identity().checkpoint_key.parse().unwrap();
    let checkpoint = Checkpoint::open(note, &testkit::ORIGIN.parse().unwrap(), &[key]).unwrap();
    let judged = policy.judge(&Note::parse(note).unwrap());
    (checkpoint.size().get(), judged.cosigned.into_iter().map(|(name, _)| name).collect())
}

/// Asks again until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap_or_else(|_| panic!("never: {what}"));
}

async fn until_served(site: &Site, policy: &WitnessPolicy, size: u64, by: &[&str]) {
    until("this checkpoint is served", async || {
        served(site, policy).await.is_some_and(|(at, names)| at == size && names == by)
    })
    .await;
}

async fn until_halted(site: &Site) -> Halt {
    let mut status = site.service.sequencer().status();
    let stopped = status.wait_for(|status| status.obstacle().is_some());
    let stopped = tokio::time::timeout(Duration::from_secs(60), stopped).await.expect("it stops").unwrap();
    stopped.obstacle().cloned().unwrap()
}

async fn readiness(site: &Site) -> (u16, String) {
    let answer = site.send(reqwest::Method::GET, &format!("{}/readyz", site.admin), &[], "").await;
    (answer.status, answer.text())
}

async fn metric(site: &Site, line: &str) -> Option<f64> {
    let answer = site.send(reqwest::Method::GET, &format!("{}/metrics", site.admin), &[], "").await;
    let text = answer.text();
    text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
}

async fn three() -> [TestWitness; 3] {
    [TestWitness::start("w1").await, TestWitness::start("w2").await, TestWitness::start("w3").await]
}

#[tokio::test]
async fn a_checkpoint_is_served_with_its_cosignatures_once_enough_witnesses_have_signed() {
    let [w1, w2, w3] = three().await;
    let policy = k_of(2, &[&w1, &w2, &w3]);
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1, &w2, &w3]).await;
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1", "w2", "w3"]).await;
    let first = site.get("/checkpoint").await;
    let tag = first.header("etag").unwrap().to_owned();
    let again = site.send(reqwest::Method::GET, "/checkpoint", &[("if-none-match", &tag)], "").await;
    assert!(again.status == 304 || again.header("etag") != Some(&tag), "a new cosignature is a new tag");
    for (name, size) in [("w1", 2.0), ("w2", 2.0), ("w3", 2.0)] {
        let line = format!("tabellion_witness_cosigned_size_leaves{{witness=\"{name}\"}}");
        until("the metric", async || metric(&site, &line).await == Some(size)).await;
    }
    assert_eq!(metric(&site, "tabellion_witness_quorum_met").await, Some(1.0));
}

#[tokio::test]
async fn before_enough_witnesses_have_signed_there_is_no_checkpoint_and_all_else_goes_on() {
    let [w1, w2, _] = three().await;
    w2.becomes(Manner::KnowsNoLog);
    let policy = k_of(2, &[&w1, &w2]);
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1, &w2]).await;
    let receipt = site.registered(&statement(1)).await;
    until("the first has signed", async || w1.seen() == 2).await;
    let answer = site.get("/checkpoint").await;
    assert_eq!(answer.refusal(), refusal(503, "Service Unavailable", "quorum-not-met"));
    let to_monitors = site.get("/v1/proof/consistency?first=0").await;
    assert_eq!(to_monitors.refusal(), answer.refusal(), "nor does a proof come with what is not served");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(site.get("/tile/0/000.p/2").await.status, 200);
    let size = receipt.signed_tree_size().unwrap();
    let own = site.get(&format!("/v1/checkpoints/{size}")).await;
    assert_eq!(read(&site, &policy, &own.body).0, size.get());
    let line = "tabellion_witness_errors_total{code=\"unknown_log\",witness=\"w2\"}";
    until("it is counted", async || metric(&site, line).await > Some(0.0)).await;
    assert_eq!(readiness(&site).await.0, 200, "registration does not wait for witnesses");
    w2.becomes(Manner::Honest);
    until_served(&site, &policy, 2, &["w1", "w2"]).await;
}

#[tokio::test]
async fn r34_without_witnesses_registration_goes_on_and_each_catches_up_by_one_proof() {
    let [w1, w2, w3] = three().await;
    let all = [&w1, &w2, &w3];
    let policy = k_of(2, &all);
    let site = start(&Place::new(), &Memory::new(), &policy, &all).await;
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1", "w2", "w3"]).await;

    w3.goes_away();
    site.registered(&statement(2)).await;
    until_served(&site, &policy, 3, &["w1", "w2"]).await;

    w1.goes_away();
    w2.goes_away();
    for n in 3..40 {
        site.registered(&statement(n)).await;
    }
    assert_eq!(served(&site, &policy).await.unwrap().0, 3, "the last that met the quorum");
    until("it is said", async || {
        let view = site.get("/v1/witnesses").await.json();
        view["quorum_met"] == json!(false) && view["witnesses"][0]["trouble"]["code"] == json!("unreachable")
    })
    .await;
    assert_eq!(metric(&site, "tabellion_witness_quorum_met").await, Some(0.0));
    assert_eq!(readiness(&site).await.0, 200);

    for (witness, seen) in [(&w1, 3), (&w2, 3), (&w3, 2)] {
        let before = witness.requests().len();
        witness.comes_back().await;
        until("it has caught up", async || witness.seen() == 40).await;
        let first = witness.requests()[before].clone();
        assert_eq!((first.old, size_of(&first)), (TreeSize::new(seen), 40), "by one proof");
    }
    until_served(&site, &policy, 40, &["w1", "w2", "w3"]).await;
    let view = site.get("/v1/witnesses").await.json();
    assert_eq!((&view["quorum"], &view["newest_size"]), (&json!("enough"), &json!(40)));
    until("it is said", async || site.get("/v1/witnesses").await.json()["quorum_met"] == json!(true)).await;
}

#[tokio::test]
async fn a_head_that_stays_the_newest_is_cosigned_again_and_again() {
    let w1 = TestWitness::start("w1").await;
    let policy = policy(&[&w1], "quorum w1");
    let (place, memory) = (Place::new(), Memory::new());
    let site = start(&place, &memory, &policy, &[&w1]).await;
    until_served(&site, &policy, 1, &["w1"]).await;
    let at = async || memory.cosignatures(TreeSize::new(1)).await.unwrap()[0].at;
    let first = at().await;
    until("a newer one is kept", async || at().await > first + 1).await;
    let repeated = w1.requests().pop().unwrap();
    assert_eq!((repeated.old, repeated.proof.len()), (TreeSize::new(1), 0));
    assert!(w1.requests().len() < 20, "once an interval");
}

#[tokio::test]
async fn without_a_quorum_the_newest_head_is_served_with_whatever_cosignatures_it_has() {
    let [w1, w2, _] = three().await;
    w2.becomes(Manner::Busy);
    let policy = policy(&[&w1, &w2], "quorum none");
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1, &w2]).await;
    site.registered(&statement(1)).await;
    assert_eq!(served(&site, &policy).await.unwrap().0, 2, "at once");
    until_served(&site, &policy, 2, &["w1"]).await;
}

#[tokio::test]
async fn all_witnesses_are_shown_the_same_heads_however_fast_the_log_grows() {
    let [w1, w2, w3] = three().await;
    let all = [&w1, &w2, &w3];
    let policy = k_of(3, &all);
    let site = start(&Place::new(), &Memory::new(), &policy, &all).await;
    for n in 1..80 {
        site.registered(&statement(n)).await;
    }
    until_served(&site, &policy, 80, &["w1", "w2", "w3"]).await;
    let shown = |witness: &TestWitness| -> Vec<String> {
        let texts = witness.requests().into_iter().map(|request| request.checkpoint.text().to_owned());
        texts.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    assert!(shown(&w1).len() < 60, "not every head is shown");
    let in_common = shown(&w1).iter().filter(|text| shown(&w2).contains(text)).count();
    assert!(2 * in_common > shown(&w1).len(), "{in_common} of {}", shown(&w1).len());
}

#[tokio::test]
async fn a_restart_and_a_follower_serve_what_was_cosigned_before() {
    let [w1, w2, _] = three().await;
    let (place, memory, policy) = (Place::new(), Memory::new(), k_of(2, &[&w1, &w2]));
    let site = start(&place, &memory, &policy, &[&w1, &w2]).await;
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1", "w2"]).await;

    let follower = start(&place, &memory, &policy, &[]).await;
    assert_eq!(follower.service.sequencer().status().borrow().role, Role::Following);
    until_served(&follower, &policy, 2, &["w1", "w2"]).await;
    site.registered(&statement(2)).await;
    until_served(&follower, &policy, 3, &["w1", "w2"]).await;
    follower.service.stop().await;

    site.service.stop().await;
    w1.goes_away();
    w2.goes_away();
    let again = start(&place, &memory, &policy, &[]).await;
    until_served(&again, &policy, 3, &["w1", "w2"]).await;
}

#[tokio::test]
async fn only_lines_of_the_witness_s_own_key_are_kept() {
    let [w1, w2, w3] = three().await;
    w1.becomes(Manner::SignsWithAnotherKey);
    w2.becomes(Manner::BesideStrangers);
    w3.becomes(Manner::Babbles);
    let policy = policy(&[&w1, &w2, &w3], "quorum none");
    let (place, memory) = (Place::new(), Memory::new());
    let site = start(&place, &memory, &policy, &[]).await;
    until_served(&site, &policy, 1, &["w2"]).await;
    let note = site.get("/v1/checkpoints/1").await.text();
    assert_eq!(note.lines().filter(|line| line.starts_with('\u{2014}')).count(), 2, "{note}");
    for (code, name) in [("not_signed", "w1"), ("nonsense", "w3")] {
        let line = format!("tabellion_witness_errors_total{{code=\"{code}\",witness=\"{name}\"}}");
        until(code, async || metric(&site, &line).await > Some(0.0)).await;
    }
    assert_eq!(memory.cosignatures(TreeSize::new(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_cosignature_that_is_damaged_in_the_database_is_left_out() {
    let [w1, w2, _] = three().await;
    let (place, memory, policy) = (Place::new(), Memory::new(), k_of(1, &[&w1, &w2]));
    let site = start(&place, &memory, &policy, &[&w1, &w2]).await;
    until_served(&site, &policy, 1, &["w1", "w2"]).await;
    site.service.stop().await;
    let kept = memory.cosignatures(TreeSize::new(1)).await.unwrap().swap_remove(0);
    let other = memory.cosignatures(TreeSize::new(1)).await.unwrap().swap_remove(1);
    let damaged = Cosignature { at: kept.at + 1000, line: other.line, ..kept };
    memory.keep_cosignature(&damaged).await.unwrap();
    let left = if damaged.witness.starts_with(b"w1") { "w2" } else { "w1" };
    w1.goes_away();
    w2.goes_away();
    let site = start(&place, &memory, &policy, &[]).await;
    assert_eq!(served(&site, &policy).await, Some((1, vec![left.to_owned()])), "at once");
}

#[tokio::test]
async fn a_witness_that_has_seen_a_larger_tree_stops_the_log_and_reads_go_on() {
    let w1 = TestWitness::start("w1").await;
    let policy = policy(&[&w1], "quorum none");
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1]).await;
    let known = statement(1);
    site.registered(&known).await;
    until("it has seen both", async || w1.seen() == 2).await;
    w1.becomes(Manner::Claims(1204));
    let halt = until_halted(&site).await;
    let said = "the database is at 2, this log has signed 1,204: the witness w1 has seen it";
    assert_eq!(halt.to_string(), said);
    let (status, obstacles) = readiness(&site).await;
    assert!(status == 503 && obstacles.contains(said), "{obstacles}");
    assert_eq!(site.register(&statement(2)).await.status, 503);
    assert_eq!(site.get(&format!("/entries/{}", known.digest())).await.status, 200);
    assert_eq!(site.get("/checkpoint").await.status, 200);
}

#[tokio::test]
async fn a_witness_that_was_shown_more_meanwhile_contradicts_nothing() {
    let w1 = TestWitness::start("w1").await;
    w1.becomes(Manner::ClaimsLater(2));
    let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&place, &memory, &policy, &[&w1]).await;
    until("it is asked about the first head", async || w1.requests().len() == 1).await;
    site.registered(&statement(1)).await;
    let kept = async || memory.newest_signed(SignatureKind::Checkpoint).await.unwrap().unwrap().head.size;
    until("it is kept", async || kept().await == TreeSize::new(2)).await;
    w1.becomes(Manner::Honest);
    let line = "tabellion_witness_errors_total{code=\"overtaken\",witness=\"w1\"}";
    until("it is counted", async || metric(&site, line).await > Some(0.0)).await;
    site.registered(&statement(2)).await;
    until_served(&site, &policy, 3, &["w1"]).await;
}

#[tokio::test]
async fn a_witness_that_has_seen_another_tree_stops_the_log() {
    let w1 = TestWitness::start("w1").await;
    let policy = policy(&[&w1], "quorum none");
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1]).await;
    until("it has seen it", async || w1.seen() == 1).await;
    w1.becomes(Manner::Unproven);
    let halt = until_halted(&site).await;
    assert_eq!(halt, Halt::WitnessDisagrees { witness: "w1".into(), size: TreeSize::new(1) });
}

#[tokio::test]
async fn the_page_of_alarms_shows_a_fork_that_a_witness_reported_next_to_the_log_s_own_checkpoint() {
    use tlog::note::LocalKey;
    let w1 = TestWitness::start("w1").await;
    let (place, policy) = (Place::new(), policy(&[&w1], "quorum none"));
    let site = start(&place, &Memory::new(), &policy, &[&w1]).await;
    until("it has seen it", async || w1.seen() == 1).await;
    let own =
        Checkpoint::parse_text(Note::parse(&site.get("/checkpoint").await.body).unwrap().text()).unwrap();
    let origin = testkit::ORIGIN.parse().unwrap();
    let forked = Checkpoint::new(origin, own.size(), RootHash::from_bytes([7; 32])).unwrap();
    let pem = std::fs::read_to_string(place.path("checkpoint.pem")).unwrap();
    let key = LocalKey::from_pkcs8_pem(testkit::ORIGIN.parse().unwrap(), &pem).unwrap();
    w1.shows(forked.sign(&key).unwrap());
    w1.becomes(Manner::Unproven);
    // The witness's checkpoint is fetched after the log stopped.
    let html = site.alarms_with("signed both roots").await;
    let (witness, database) = html.split_once("<h3>Database</h3>").expect("both trees");
    for part in
        ["<h3>Witness w1</h3>", &forked.root().to_string(), "Reported", "w1.example+", "a witness's, valid"]
    {
        assert!(witness.contains(part), "no {part}: {witness}");
    }
    for part in [&*own.root().to_string(), "Committed", "w1.example+", "a witness's, valid"] {
        assert!(database.contains(part), "no {part}: {database}");
    }
    assert_eq!(html.matches("this log's, valid").count(), 2, "{html}");
}

#[tokio::test]
async fn the_page_of_alarms_claims_no_more_of_a_witness_s_tree_than_its_size() {
    let w1 = TestWitness::start("w1").await;
    let policy = policy(&[&w1], "quorum none");
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1]).await;
    until("it has seen it", async || w1.seen() == 1).await;
    w1.becomes(Manner::ClaimsAndHides(1204));
    let html = site.alarms_with("Checkpoints that disagree").await;
    let (witness, database) = html.split_once("<h3>Database</h3>").expect("both trees");
    for part in ["has seen a tree of size 1204", "<dt>Size</dt><dd>1204</dd>", "not known to this page"] {
        assert!(witness.contains(part), "no {part}: {witness}");
    }
    assert!(
        database.contains("<dt>Size</dt><dd>1</dd>") && database.contains("this log's, valid"),
        "{database}"
    );
    assert!(!html.contains("signed both roots"), "{html}");
}

#[tokio::test]
async fn a_witness_that_never_saw_this_log_cannot_disagree() {
    let w1 = TestWitness::start("w1").await;
    w1.becomes(Manner::Unproven);
    let policy = policy(&[&w1], "quorum none");
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1]).await;
    let line = "tabellion_witness_errors_total{code=\"unproven\",witness=\"w1\"}";
    until("it is counted", async || metric(&site, line).await > Some(1.0)).await;
    site.registered(&statement(1)).await;
}

#[tokio::test]
async fn r43_an_old_copy_without_its_pin_is_refused_for_a_witness_has_seen_more() {
    let [w1, w2, w3] = three().await;
    let all = [&w1, &w2, &w3];
    let (place, memory, policy) = (Place::new(), Memory::new(), k_of(2, &all));
    let site = start(&place, &memory, &policy, &all).await;
    let known = statement(1);
    site.registered(&known).await;
    until_served(&site, &policy, 2, &["w1", "w2", "w3"]).await;
    let backup = memory.backup();
    site.registered(&statement(2)).await;
    until_served(&site, &policy, 3, &["w1", "w2", "w3"]).await;
    site.service.stop().await;

    memory.restore(&backup);
    lose_the_pin(&place);
    w1.goes_away();
    w2.goes_away();
    let site = start(&place, &memory, &policy, &[]).await;
    let said = "the database is at 2, this log has signed 3: the witness w3 has seen it";
    assert_eq!(until_halted(&site).await.to_string(), said, "one that answers is enough to refuse");
    assert_eq!(site.register(&statement(3)).await.status, 503);
    assert_eq!(site.get(&format!("/entries/{}", known.digest())).await.status, 200, "reads go on");
    assert_eq!(memory.head().await.unwrap().size(), TreeSize::new(2));
    site.service.stop().await;
}

#[tokio::test]
async fn r21_a_pin_as_old_as_the_database_does_not_help_against_a_witness() {
    let w1 = TestWitness::start("w1").await;
    let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&place, &memory, &policy, &[&w1]).await;
    let backup = backup_with_signatures(&memory).await;
    let [pin] = &pins(&place)[..] else { panic!("one file") };
    let (pin, bytes) = (pin.clone(), std::fs::read(pin).unwrap());
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1"]).await;
    site.service.stop().await;
    memory.restore(&backup);
    lose_the_pin(&place);
    std::fs::write(pin, bytes).unwrap();
    let site = start(&place, &memory, &policy, &[]).await;
    let expected =
        Halt::WitnessAhead { witness: "w1".into(), database: TreeSize::new(1), signed: TreeSize::new(2) };
    assert_eq!(until_halted(&site).await, expected);
}

#[tokio::test]
async fn a_witness_that_has_seen_more_is_heard_at_once_though_it_never_shows_its_note() {
    let w1 = TestWitness::start("w1").await;
    let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&place, &memory, &policy, &[&w1]).await;
    until_served(&site, &policy, 1, &["w1"]).await;
    site.service.stop().await;
    w1.becomes(Manner::ClaimsAndHides(1204));
    let site = start(&place, &memory, &policy, &[]).await;
    assert_eq!(site.register(&statement(1)).await.status, 503, "it never led");
    assert!(matches!(until_halted(&site).await, Halt::WitnessAhead { .. }));
    assert_eq!(memory.head().await.unwrap().size(), TreeSize::new(1));
}

#[tokio::test]
async fn one_witness_that_has_seen_more_outweighs_a_quorum_that_answered_before_it() {
    let [w1, w2, _] = three().await;
    let (place, memory, policy) = (Place::new(), Memory::new(), k_of(1, &[&w1, &w2]));
    let site = start(&place, &memory, &policy, &[&w1, &w2]).await;
    until_served(&site, &policy, 1, &["w1", "w2"]).await;
    site.service.stop().await;
    lose_the_pin(&place);
    w2.becomes(Manner::ClaimsLater(1204));
    let says_it_last = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        w2.becomes(Manner::Honest);
    };
    let (site, ()) = tokio::join!(start(&place, &memory, &policy, &[]), says_it_last);
    assert_eq!(site.register(&statement(1)).await.status, 503, "it never led");
    assert!(matches!(until_halted(&site).await, Halt::WitnessAhead { .. }));
    assert!(pins(&place).is_empty());
}

#[tokio::test]
async fn a_log_that_lost_database_and_pin_does_not_begin_again_while_a_witness_remembers_it() {
    let [w1, w2, _] = three().await;
    let (place, policy) = (Place::new(), k_of(1, &[&w1, &w2]));
    let site = start(&place, &Memory::new(), &policy, &[&w1, &w2]).await;
    site.registered(&statement(1)).await;
    until("both have seen it", async || w1.seen() == 2 && w2.seen() == 2).await;
    site.service.stop().await;
    lose_the_pin(&place);
    w1.goes_away();
    let lost = Memory::new();
    let site = start(&place, &lost, &policy, &[]).await;
    let said = "the database is at 0, this log has signed 2: the witness w2 has seen it";
    assert_eq!(until_halted(&site).await.to_string(), said);
    assert_eq!(lost.head().await.unwrap().size(), TreeSize::EMPTY);
}

/// Lets the log grow to this size, and returns the database as a power cut leaves it before the signature over the newest
/// head is stored, and that head as clients have read it.
async fn power_cut(place: &Place, memory: &Memory, policy: &WitnessPolicy, size: u64) -> (Memory, Note) {
    let store = FailingStore::new(memory.clone());
    store.fail_every(StoreMethod::KeepSignatures);
    let site = place.start_on(store.clone(), witnessed_by(policy)).await;
    for n in 1..size {
        site.registered(&statement(n)).await;
    }
    let head = site.get(&format!("/v1/checkpoints/{size}")).await;
    let (left, head) = (memory.backup(), Note::parse(&head.body).unwrap());
    let newest = left.newest_signed(SignatureKind::Checkpoint).await.unwrap();
    assert!(newest.is_none_or(|newest| newest.head.size < TreeSize::new(size)), "the signature is stored");
    store.heal();
    site.service.stop().await;
    (left, head)
}

#[tokio::test]
async fn a_witness_that_has_seen_a_head_whose_signature_is_lost_gets_it_again() {
    for size in [1, 2] {
        let w1 = TestWitness::start("w1").await;
        let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
        if size > 1 {
            let site = start(&place, &memory, &policy, &[&w1]).await;
            until_served(&site, &policy, 1, &["w1"]).await;
            site.service.stop().await;
        }
        let (left, head) = power_cut(&place, &memory, &policy, size).await;
        w1.has_cosigned(head);
        let site = start(&place, &left, &policy, &[&w1]).await;
        until_served(&site, &policy, size, &["w1"]).await;
        site.registered(&statement(9)).await;
        until_served(&site, &policy, size + 1, &["w1"]).await;
        site.service.stop().await;
    }
}

#[tokio::test]
async fn a_head_whose_signature_is_lost_is_not_signed_again_if_a_witness_has_seen_another_of_its_size() {
    use tlog::note::LocalKey;
    for size in [1, 2] {
        let w1 = TestWitness::start("w1").await;
        let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
        if size > 1 {
            let site = start(&place, &memory, &policy, &[&w1]).await;
            until_served(&site, &policy, 1, &["w1"]).await;
            site.service.stop().await;
        }
        let (left, _) = power_cut(&place, &memory, &policy, size).await;
        let origin = testkit::ORIGIN.parse().unwrap();
        let other = Checkpoint::new(origin, TreeSize::new(size), RootHash::from_bytes([7; 32])).unwrap();
        let pem = std::fs::read_to_string(place.path("checkpoint.pem")).unwrap();
        let key = LocalKey::from_pkcs8_pem(testkit::ORIGIN.parse().unwrap(), &pem).unwrap();
        w1.has_cosigned(other.sign(&key).unwrap());
        let site = start(&place, &left, &policy, &[&w1]).await;
        let expected = Halt::WitnessDisagrees { witness: "w1".into(), size: TreeSize::new(size) };
        assert_eq!(until_halted(&site).await, expected);
        let signed = left.newest_signed(SignatureKind::Checkpoint).await.unwrap();
        assert!(signed.is_none_or(|signed| signed.head.size < TreeSize::new(size)));
        site.service.stop().await;
    }
}

#[tokio::test]
async fn a_new_log_starts_before_its_witnesses_do() {
    let [w1, w2, _] = three().await;
    w1.goes_away();
    w2.becomes(Manner::Hangs);
    let policy = k_of(1, &[&w1, &w2]);
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1, &w2]).await;
    site.registered(&statement(1)).await;
}

#[tokio::test]
async fn the_last_head_of_a_frozen_log_is_shown_to_witnesses_and_stays_fresh() {
    let w1 = TestWitness::start("w1").await;
    w1.becomes(Manner::Busy);
    let (memory, policy) = (Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&Place::new(), &memory, &policy, &[&w1]).await;
    site.registered(&statement(1)).await;
    memory.freeze("operator", 7).await.unwrap();
    assert_eq!(until_halted(&site).await, Halt::Frozen);
    w1.becomes(Manner::Honest);
    until_served(&site, &policy, 2, &["w1"]).await;
    let asked = w1.requests().len();
    until("it is cosigned again", async || w1.requests().len() > asked + 1).await;
}

#[tokio::test]
async fn what_a_witness_signs_in_the_future_is_not_kept() {
    let w1 = TestWitness::start("w1").await;
    w1.becomes(Manner::Ahead);
    let (memory, policy) = (Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&Place::new(), &memory, &policy, &[&w1]).await;
    let line = "tabellion_witness_errors_total{code=\"clock\",witness=\"w1\"}";
    until("it is counted", async || metric(&site, line).await > Some(0.0)).await;
    assert_eq!(memory.cosignatures(TreeSize::new(1)).await.unwrap(), []);
    w1.becomes(Manner::Honest);
    until_served(&site, &policy, 1, &["w1"]).await;
}

#[tokio::test]
async fn without_a_pin_a_log_starts_when_enough_witnesses_confirm_its_newest_head() {
    let [w1, w2, w3] = three().await;
    let all = [&w1, &w2, &w3];
    let (place, memory, policy) = (Place::new(), Memory::new(), k_of(2, &all));
    let site = start(&place, &memory, &policy, &all).await;
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1", "w2", "w3"]).await;
    site.service.stop().await;
    lose_the_pin(&place);
    w3.goes_away();
    let site = start(&place, &memory, &policy, &[]).await;
    site.registered(&statement(2)).await;
    until_served(&site, &policy, 3, &["w1", "w2"]).await;
    site.service.stop().await;

    lose_the_pin(&place);
    w2.goes_away();
    let site = start(&place, &memory, &policy, &[]).await;
    let halt = until_halted(&site).await;
    assert!(matches!(&halt, Halt::NoPin { size, .. } if size.get() == 3), "{halt:?}");
    assert!(halt.to_string().contains("w2: cannot reach the witness"), "{halt}");
    site.service.stop().await;
}

#[tokio::test]
async fn with_its_pin_a_log_starts_though_no_witness_answers() {
    let w1 = TestWitness::start("w1").await;
    let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum w1"));
    let site = start(&place, &memory, &policy, &[&w1]).await;
    until_served(&site, &policy, 1, &["w1"]).await;
    site.service.stop().await;
    w1.becomes(Manner::Hangs);
    let site = start(&place, &memory, &policy, &[]).await;
    site.registered(&statement(1)).await;
    assert_eq!(served(&site, &policy).await.unwrap().0, 1, "what met the quorum before");
    site.service.stop().await;

    lose_the_pin(&place);
    let site = start(&place, &memory, &policy, &[]).await;
    let halt = until_halted(&site).await;
    // The request and the question to all witnesses have the same limit: either may end first.
    let said = halt.to_string();
    assert!(
        ["not all answered in time", "cannot reach the witness"].iter().any(|why| said.contains(why)),
        "{said}"
    );
}

#[tokio::test]
async fn without_a_pin_a_policy_without_a_quorum_confirms_nothing() {
    let w1 = TestWitness::start("w1").await;
    let (place, memory, policy) = (Place::new(), Memory::new(), policy(&[&w1], "quorum none"));
    let site = start(&place, &memory, &policy, &[&w1]).await;
    until("it has seen it", async || w1.seen() == 1).await;
    site.service.stop().await;
    lose_the_pin(&place);
    let site = start(&place, &memory, &policy, &[]).await;
    let halt = until_halted(&site).await;
    assert!(matches!(&halt, Halt::NoPin { .. }), "{halt:?}");
    assert!(halt.to_string().contains("no quorum"), "{halt}");
}

#[tokio::test]
async fn every_receipt_s_tree_size_is_a_checkpoint_that_can_be_read() {
    let place = Place::new();
    let site = place.start().await;
    let mut sizes = vec![1];
    for n in 1..8 {
        let receipt = site.registered(&statement(n)).await;
        sizes.push(receipt.signed_tree_size().unwrap().get());
    }
    let own = site.get("/v1/checkpoints/8").await;
    assert_eq!(own.status, 200, "at once, though the list has what is kept");
    until("the newest is kept", async || {
        let last = site.get("/v1/checkpoints?after=7").await.json();
        last["checkpoints"].as_array().unwrap().len() == 1
    })
    .await;
    let nobody: WitnessPolicy = "quorum none\n".parse().unwrap();
    let (mut listed, mut next) = (Vec::new(), Some("/v1/checkpoints?limit=3".to_owned()));
    while let Some(page) = next.take() {
        let answer = site.get(&page).await;
        for one in answer.json()["checkpoints"].as_array().unwrap() {
            let size = one["size"].as_u64().unwrap();
            assert_eq!(read(&site, &nobody, one["note"].as_str().unwrap().as_bytes()).0, size);
            let alone = site.get(&format!("/v1/checkpoints/{size}")).await;
            assert_eq!(alone.text(), one["note"].as_str().unwrap());
            assert_eq!(alone.header("content-type"), Some("text/plain; charset=utf-8"));
            listed.push(size);
        }
        next = answer.header("link").map(|link| {
            assert!(link.starts_with(&format!("<{}/v1/checkpoints?after=", site.url)), "{link}");
            link[1..link.find('>').unwrap()].to_owned()
        });
    }
    assert_eq!(listed, sizes);
    let unknown = site.get("/v1/checkpoints/99").await;
    assert_eq!(unknown.status, 404);
    for wrong in
        ["/v1/checkpoints/x", "/v1/checkpoints?limit=0", "/v1/checkpoints?limit=101", "/v1/checkpoints?x=1"]
    {
        assert_eq!(site.get(wrong).await.status, 400, "{wrong}");
    }
    let view = site.get("/v1/witnesses").await.json();
    assert_eq!((&view["witnesses"], &view["quorum_met"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn a_quorum_that_nobody_can_be_asked_for_is_refused_at_start() {
    let w1 = TestWitness::start("w1").await;
    let text = format!("witness w1 {}\nquorum w1\n", w1.key);
    let mut config = Place::new().config();
    config.witnesses.policy = Some(text.parse().unwrap());
    let mistakes = config.mistakes();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert!(mistakes[0].to_string().contains("cannot meet the quorum w1"), "{mistakes:?}");
}

fn size_of(request: &AddCheckpoint) -> u64 {
    Checkpoint::parse_text(request.checkpoint.text()).unwrap().size().get()
}

fn lose_the_pin(place: &Place) {
    for pin in pins(place) {
        std::fs::remove_file(pin).unwrap();
    }
}

fn pins(place: &Place) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(place.path("state")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("pin.")).collect()
}

#[tokio::test]
async fn a_monitor_gets_the_cosigned_checkpoint_and_the_way_to_it_with_one_request() {
    let [w1, w2, _] = three().await;
    let policy = k_of(2, &[&w1, &w2]);
    let site = start(&Place::new(), &Memory::new(), &policy, &[&w1, &w2]).await;
    site.registered(&statement(1)).await;
    until_served(&site, &policy, 2, &["w1", "w2"]).await;
    w2.becomes(Manner::KnowsNoLog);
    site.registered(&statement(2)).await;
    let grown = async |first: u64| {
        let view = site.get(&format!("/v1/proof/consistency?first={first}")).await.json();
        let (size, by) = read(&site, &policy, view["checkpoint"].as_str().unwrap().as_bytes());
        assert_eq!(view["second"], size);
        (size, by.len())
    };
    assert_eq!(grown(1).await, (2, 2), "what enough witnesses have cosigned, and not what is newer");
    let bundle = async |query: &str| {
        let path = format!("/v1/proof/inclusion?{query}");
        let answer = site.send(reqwest::Method::GET, &path, &[("accept", "text/x.tlog.proof")], "").await;
        let text = answer.text();
        let note = &text[text.rfind(&format!("{}\n", testkit::ORIGIN)).unwrap()..];
        let (size, by) = read(&site, &policy, note.as_bytes());
        (size, by.len() == 2)
    };
    assert_eq!(bundle("index=1").await, (2, true), "under what witnesses have cosigned");
    assert_eq!(bundle("index=2").await, (3, false), "a leaf that is not there yet is under what is newest");
    assert_eq!(bundle("index=1&size=2").await, (2, true));
    assert_eq!(grown(3).await.0, 3, "who knows more than that is not sent back");
}
