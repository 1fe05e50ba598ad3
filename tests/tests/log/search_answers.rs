//! Answers of searches and accusations against an index as files: verified with the log gone.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use black_box::{Connection, Log, Ran, Service};
use lookup_tree::{
    HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunId, RunProof, RunSummary, schedule,
};
use merkle::{CompactRange, LeafIndex, TreeSize};
use registration::{LookupKind, Policy, index_head};
use scitt::{SignedStatement, Signer};
use serde_json::{Value, json};
use verifier::index::{
    IndexAccusation, IndexAccusationFile, IndexHeadEvidence, IndexPolicyEvidence, PostingEvidence, SearchTerm,
};

/// How long something that happens by itself may take.
const SOON: Duration = Duration::from_secs(60);

/// A policy with an index that gets a head in each interval of so many seconds.
fn policy_toml(every: u64) -> String {
    let key = testkit::verifier().public_key().did_key();
    let table = registration::policy::index_table_digest();
    let index = format!("[index]\ntable = \"sha256:{table}\"\nkeys = [\"{key}\"]\nevery = {every}\n");
    format!("{}\n{index}", testkit::policy_toml())
}

fn log_with_index(every: u64) -> Log {
    let log = Log::sqlite();
    log.write_private("keys/index.pem", &testkit::verifier().to_pkcs8_pem().unwrap());
    log.set_policy(&policy_toml(every));
    log
}

/// Writes `trust.toml` with the keys of the log, and of no issuer.
fn trust(log: &Log, service: &Service) {
    let kid = log.tabellion(&["key", "show", "--json"]).must_succeed().json()["receipt"]["kid"].clone();
    let pin = ["trust", "add", "log", "--trust", "trust.toml", "--kid", kid.as_str().unwrap()];
    let keys = ["--checkpoint-key", &log.vkey(), "--url", service.url()];
    log.tabellion(&[&pin[..], &keys].concat()).must_succeed();
    fs::write(log.path("nobody.toml"), "").unwrap();
}

fn thing(number: u64) -> SignedStatement {
    testkit::opaque("thing", &json!({ "n": number }))
}

/// Registers a statement, and returns its leaf.
fn register(connection: &mut Connection, statement: &SignedStatement) -> u64 {
    let answer = connection.post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
    connection.get(&format!("/v1/entries/{}", statement.digest())).json()["index"].as_u64().unwrap()
}

/// Waits until a head of the index has this many leaves.
fn until_indexed(service: &Service, leaves: u64) {
    let begun = Instant::now();
    let mut connection = service.connection();
    while connection.get("/v1/entries?subject=none&proof=1").json()["proof"]["size"].as_u64() < Some(leaves) {
        assert!(begun.elapsed() < SOON, "no head has {leaves} leaves");
        sleep(Duration::from_millis(100));
    }
}

/// Searches things until the log can prove the answer.
fn prove(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    let begun = Instant::now();
    let search = ["entry", "search", "--subject", "thing", "--prove", "--json", "--url", service.url()];
    loop {
        let ran = log.tabellion(&[&search[..], arguments].concat());
        if ran.code != Some(7) {
            return ran;
        }
        assert!(begun.elapsed() < SOON, "{ran}");
        sleep(Duration::from_millis(200));
    }
}

fn leaves(found: &Value) -> Vec<u64> {
    found.as_array().unwrap().iter().map(|entry| entry["leaf"].as_u64().unwrap()).collect()
}

#[test]
fn a_proven_answer_is_verified_with_the_log_gone() {
    let log = log_with_index(1);
    let service = log.serve();
    let mut connection = service.connection();
    let statements: Vec<SignedStatement> = (0..5).map(thing).collect();
    let things: Vec<u64> = statements.iter().map(|thing| register(&mut connection, thing)).collect();
    let erased = statements[2].digest().to_string();
    let erase = ["entry", "erase", &erased, "--reason", "asked to", "--key", "keys/operator.pem"];
    log.tabellion(&[&erase[..], &["--url", service.url()]].concat()).must_succeed();
    until_indexed(&service, things[4] + 2);
    trust(&log, &service);

    let before = things[2].to_string();
    let complete = prove(&log, &service, &["--before", &before, "-o", "complete"]).must_succeed().json();
    assert_eq!(complete["proof"]["outcome"], "complete");
    assert_eq!(leaves(&complete["proof"]["found"]), things[..2]);
    assert_eq!(complete["entries"][0]["index"], things[0], "the rows are those of a search without proof");

    let ran = prove(&log, &service, &["-o", "all"]);
    assert_eq!(ran.code, Some(11), "{ran}");
    let all = ran.json();
    let gap = &all["proof"]["gaps"][0];
    assert_eq!(
        (&gap["gap"], &gap["leaf"], &gap["entry"]),
        (&json!("erased"), &json!(things[2]), &json!(erased))
    );
    assert_eq!(leaves(&all["proof"]["found"]), [things[0], things[1], things[3], things[4]]);

    let newest = register(&mut connection, &thing(5));
    let after = things[2].to_string();
    let to_head = prove(&log, &service, &["--after", &after, "--to-head", "-o", "to-head"]);
    assert_eq!(leaves(&to_head.must_succeed().json()["proof"]["found"]), [things[3], things[4], newest]);
    service.stop();

    let verify = |file: &str, arguments: &[&str]| log.tabellion(&[&["verify", file], arguments].concat());
    let text = verify("complete", &[]).must_succeed().stdout.clone();
    let up_to = format!("complete up to leaf {} (registered at ", things[2]);
    assert!(text.contains(&up_to), "{text}");
    assert!(
        text.contains("not checked: the log's claim: no party that you trust has recomputed it"),
        "{text}"
    );
    verify("to-head", &[]).must_succeed();
    verify("to-head", &["--max-age", "30d", "--json"]).must_fail(2, "usage");
    let text = verify("all", &[]);
    assert_eq!(text.code, Some(11), "{text}");
    assert!(
        text.stdout.contains(&format!("leaf {} was erased by the statement at leaf ", things[2])),
        "{text}"
    );

    verify("all", &["--trust", "nobody.toml", "--json"]).must_fail(4, "no-trust-anchors");
    verify("all", &["--payload", "trust.toml", "--json"]).must_fail(2, "usage");
    let monitor = log.vkey();
    verify("complete", &["--attested-by", &monitor, "--json"]).must_fail(4, "not-attested");
    let bytes = fs::read(log.path("complete")).unwrap();
    fs::write(log.path("cut"), &bytes[..bytes.len() - 1]).unwrap();
    verify("cut", &["--json"]).must_fail(3, "malformed-answer");
}

#[test]
fn what_no_proof_can_be_about_is_refused_before_anything_is_fetched() {
    let log = Log::sqlite();
    let search = |arguments: &[&str]| {
        log.tabellion(
            &[&["entry", "search", "--prove", "--json", "--url", "http://127.0.0.1:1"], arguments].concat(),
        )
    };
    for arguments in
        [&["--by", "subject_prefix=a"][..], &["--subject", "a", "--from-time", "2026-01-01"], &[]]
    {
        search(arguments).must_fail(2, "usage");
    }
}

/// The index of a log that omits everything.
const NO_POSTINGS: [Posting; 0] = [];

/// A head of an index that has no entry, of the first leaves of a log.
struct LyingHead {
    statement: SignedStatement,
    indexed: Vec<SignedStatement>,
}

impl LyingHead {
    /// Registers the head of an empty index with the log's own key.
    fn register(connection: &mut Connection, indexed: Vec<SignedStatement>) -> Self {
        let policy = Policy::from_toml(&policy_toml(3600)).unwrap();
        let rules = policy.contents().index.as_ref().unwrap();
        let leaves: Vec<_> = indexed.iter().map(|statement| statement.digest().leaf_hash()).collect();
        let head = IndexHead {
            series: rules.series(),
            size: TreeSize::new(indexed.len() as u64),
            log_root: CompactRange::empty().grow(&leaves).root(),
            horizon: LeafIndex::new(0),
            runs: vec![HeadRun { id: RunId::TAIL, summary: RunSummary::of(&NO_POSTINGS).unwrap() }],
        };
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let log = (testkit::LOG_ISS, testkit::ORIGIN);
        let statement = index_head::sign(&head, now, log, rules, &testkit::verifier()).unwrap();
        register(connection, &statement);
        Self { statement, indexed }
    }

    /// The accusation that the index omits the subject of the entry at a leaf.
    fn omits(&self, subject: &str, leaf: u64, receipt: Vec<u8>) -> IndexAccusation {
        let term = SearchTerm { kind: LookupKind::Subject.number(), value: subject.as_bytes().to_vec() };
        let leaves: Vec<_> = self.indexed.iter().map(|statement| statement.digest().leaf_hash()).collect();
        let question = IndexQuestion::new([term.key()], LeafRange::new(leaf, leaf + 1)).unwrap();
        let run = schedule(TreeSize::new(leaves.len() as u64))[0];
        let question = question.for_run(&run, &RunSummary::of(&NO_POSTINGS).unwrap()).unwrap();
        IndexAccusation::Omits(PostingEvidence {
            head: IndexHeadEvidence { statement: self.statement.bytes().to_vec(), receipt },
            leaf: LeafIndex::new(leaf),
            statement: self.indexed[leaf as usize].bytes().to_vec(),
            payload: None,
            path: CompactRange::empty().grow(&leaves).path(LeafIndex::new(leaf)).unwrap(),
            proof: RunProof::prove(&NO_POSTINGS[..], &question).unwrap().encode(),
            term,
        })
    }
}

#[test]
fn a_file_alone_shows_that_the_index_of_a_log_is_wrong() {
    let log = log_with_index(3600);
    let service = log.serve();
    trust(&log, &service);
    let mut connection = service.connection();
    let thing = thing(0);
    register(&mut connection, &thing);
    let first =
        connection.get("/v1/entries?limit=1").json()["entries"][0]["entry_id"].as_str().unwrap().to_owned();
    let policy = connection.get(&format!("/v1/entries/{first}/statement"));
    let policy = SignedStatement::parse(policy.body.to_vec()).unwrap();
    let head = LyingHead::register(&mut connection, vec![policy.clone(), thing]);
    let mut receipt = |statement: &SignedStatement| {
        connection.get(&format!("/entries/{}", statement.digest())).body.to_vec()
    };
    let (of_policy, of_head) = (receipt(&policy), receipt(&head.statement));
    service.stop();

    let write = |name: &str, accusation| {
        let policy = IndexPolicyEvidence { statement: policy.bytes().to_vec(), receipt: of_policy.clone() };
        fs::write(log.path(name), IndexAccusationFile { policy, accusation }.encode()).unwrap();
    };
    write("omits", head.omits("thing", 1, of_head.clone()));
    write("false", head.omits("nothing", 1, of_head));
    let verify = |file: &str, trust: &str| log.tabellion(&["verify", file, "--trust", trust, "--json"]);
    verify("omits", "trust.toml").must_fail(8, "index-omits");
    verify("omits", "nobody.toml").must_fail(4, "accusation-refused");
    verify("false", "trust.toml").must_fail(3, "accusation-refused");
    let bytes = fs::read(log.path("omits")).unwrap();
    fs::write(log.path("cut"), &bytes[..bytes.len() - 1]).unwrap();
    verify("cut", "trust.toml").must_fail(3, "accusation-refused");
}
