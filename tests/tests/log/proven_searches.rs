//! Searches whose answers prove that they are complete: every answer is verified as a client does, with the keys of the log and
//! of its policy.

use std::collections::BTreeSet;
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use black_box::{Answer, Connection, Log, Service, multipart, on_both_databases};
use data_encoding::BASE64;
use registration::Policy;
use scitt::{CoseKey, KeySet, PublicKey, SignedStatement, Signer};
use serde_json::{Value, json};
use verifier::index::{SearchProof, TrustedIndex};
use verifier::{CheckpointEvidence, TrustStore, TrustedLog, VerificationOutcome};

/// How long something that happens by itself may take.
const SOON: Duration = Duration::from_secs(60);
/// Leaves of the shortest run.
const RUN: u64 = 4096;

/// A policy with an index that gets a head every second, if this is 1.
fn policy(every: u64) -> String {
    let key = testkit::verifier().public_key().did_key();
    let table = registration::policy::index_table_digest();
    let policy = testkit::policy_toml();
    format!("{policy}\n[index]\ntable = \"sha256:{table}\"\nkeys = [\"{key}\"]\nevery = {every}\n")
}

/// Gives a log an index of which it makes heads.
fn with_index(log: &Log, every: u64) {
    log.write_private("keys/index.pem", &testkit::verifier().to_pkcs8_pem().unwrap());
    log.set_policy(&policy(every));
}

/// What a client knows of a log before it searches.
struct Searcher {
    connection: Connection,
    index: TrustedIndex,
    trust: TrustStore,
}

/// A page whose proof holds.
#[derive(Debug)]
struct ProvenPage {
    size: u64,
    leaves: (u64, u64),
    entries: Vec<u64>,
    blind: Vec<(u64, String)>,
    head_entry: String,
    next: Option<String>,
}

impl Searcher {
    fn of(service: &Service) -> Self {
        let mut connection = service.connection();
        let keys = KeySet::parse(&connection.get("/.well-known/scitt-keys").body).unwrap().keys().to_vec();
        let mut trust = TrustStore::default();
        trust.put_log(TrustedLog::new(testkit::LOG_ISS, testkit::ORIGIN, keys));
        let policy = Policy::from_toml(&policy(1)).unwrap();
        let rules = policy.contents().index.clone().unwrap();
        let index = TrustedIndex {
            iss: testkit::LOG_ISS.into(),
            subject: registration::index_head::subject(testkit::ORIGIN),
            series: rules.series(),
            keys: rules.keys.iter().map(|bound| key_named(bound.kid.clone(), bound.key.clone())).collect(),
        };
        Self { connection, index, trust }
    }

    /// Asks for a proven page, also while the log has no head that proves it.
    fn answer(&mut self, path: &str) -> Answer {
        let begun = Instant::now();
        loop {
            let answer = self.connection.get(path);
            if answer.status != 503 {
                return answer;
            }
            let code = answer.json()["code"].clone();
            let awaited = ["index-head-missing", "index-head-outdated", "not-signed-yet", "index-behind"];
            assert!(awaited.iter().any(|awaited| code == *awaited), "{answer:?}");
            answer.must_say_when_to_come_back();
            assert!(begun.elapsed() < SOON, "{answer:?}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Reads a page and verifies its proof.
    fn page(&mut self, path: &str) -> ProvenPage {
        let answer = self.answer(path);
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        let file = BASE64.decode(page["proof"]["file"].as_str().unwrap().as_bytes()).unwrap();
        let proof = SearchProof::decode(&file).unwrap();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let verdict = proof.verify(&self.index, &CheckpointEvidence::default(), &self.trust, now);
        assert_eq!(verdict.outcome, VerificationOutcome::Verified, "{:#?}", verdict.checks);
        let (head, findings) = (verdict.head.unwrap().head, verdict.findings.unwrap());
        assert_eq!(head.horizon.get(), head.size.get());

        let lists = findings.leaves.values().map(|list| list.iter().copied().collect::<BTreeSet<_>>());
        let all = lists.reduce(|one, other| &one & &other).unwrap();
        let proven: BTreeSet<u64> = all.iter().map(|leaf| leaf.get()).collect();
        let entries = indexes(&page);
        assert_eq!(proven, entries.iter().copied().collect());
        let blind = blind(&page);
        let listed: BTreeSet<u64> = blind.iter().map(|(leaf, _)| *leaf).collect();
        let proven: BTreeSet<u64> = findings.blind.iter().map(|(leaf, _)| leaf.get()).collect();
        assert_eq!(listed, proven);
        let leaves = (proof.leaves.start.get(), proof.leaves.end.get());
        assert_eq!(page["proof"]["leaves"], json!({ "from": leaves.0, "to": leaves.1 }));
        assert_eq!(page["proof"]["size"], head.size.get());
        ProvenPage {
            size: head.size.get(),
            leaves,
            entries,
            blind,
            head_entry: page["proof"]["head_entry"].as_str().unwrap().to_owned(),
            next: next(&answer),
        }
    }

    /// Reads all pages, which join without a gap, and returns their entries.
    fn all(&mut self, query: &str) -> Vec<u64> {
        let (mut found, mut before) = (Vec::new(), None::<ProvenPage>);
        let mut path = Some(format!("/v1/entries?{query}&proof=1"));
        while let Some(at) = path {
            let page = self.page(&at);
            if let Some(before) = &before {
                let joins = page.leaves.1 == before.leaves.0 || before.leaves.1 == page.leaves.0;
                assert!(joins, "{page:?} does not follow {before:?}");
            }
            found.extend(&page.entries);
            path = page.next.clone();
            before = Some(page);
        }
        found
    }

    /// Finds the same entries without a proof.
    fn plain(&mut self, query: &str) -> Vec<u64> {
        indexes(&self.connection.get(&format!("/v1/entries?limit=1000&{query}")).json())
    }

    /// Waits until a head has all entries of these subjects.
    fn until_head_has_all(&mut self, subjects: &[&str]) -> ProvenPage {
        let newest =
            subjects.iter().flat_map(|subject| self.plain(&format!("subject={subject}&order=newest")));
        let newest = newest.max().unwrap();
        self.until_head_has(newest + 1)
    }

    /// Waits until a head has this many leaves.
    fn until_head_has(&mut self, leaves: u64) -> ProvenPage {
        let begun = Instant::now();
        loop {
            let page = self.page("/v1/entries?subject=none&proof=1");
            if page.size >= leaves {
                return page;
            }
            assert!(begun.elapsed() < SOON, "no head has {leaves} leaves: {page:?}");
            sleep(Duration::from_millis(100));
        }
    }
}

fn key_named(kid: Vec<u8>, key: PublicKey) -> CoseKey {
    CoseKey { kid: Some(kid), ..CoseKey::bare(key) }
}

fn indexes(page: &Value) -> Vec<u64> {
    page["entries"].as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

fn blind(page: &Value) -> Vec<(u64, String)> {
    let of = |blind: &Value| (blind["leaf"].as_u64().unwrap(), blind["why"].as_str().unwrap().to_owned());
    page["blind"].as_array().map(|list| list.iter().map(of).collect()).unwrap_or_default()
}

fn next(answer: &Answer) -> Option<String> {
    let (_, next) = answer.header("link")?.split_once("/v1/")?;
    Some(format!("/v1/{}", next.split_once('>')?.0))
}

/// Registers a statement, and returns its leaf.
fn register(connection: &mut Connection, statement: &SignedStatement) -> u64 {
    let answer = connection.post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
    connection.get(&format!("/v1/entries/{}", statement.digest())).json()["index"].as_u64().unwrap()
}

/// Registers statements about `first` and `second` in turn, in batches from several connections.
fn register_many(service: &Service, part: &str, statements: usize) {
    let each = |worker: usize| {
        let mut connection = service.connection();
        for batch in (0..statements / 256).filter(|batch| batch % 4 == worker) {
            let subject = |n: usize| if n.is_multiple_of(2) { "first" } else { "second" };
            let statement =
                |n: usize| testkit::opaque(subject(n), &json!({ "part": part, "n": batch * 256 + n }));
            let statements: Vec<SignedStatement> = (0..256).map(statement).collect();
            let body = multipart::batch(statements.iter().map(|statement| &statement.bytes()[..]));
            let mixed = multipart::content_type("mixed");
            let answer = connection.send("POST", "/v1/entries/batch", &[("Content-Type", &mixed)], &body);
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    };
    thread::scope(|scope| (0..4).for_each(|worker| drop(scope.spawn(move || each(worker)))));
}

fn erase(log: &Log, service: &Service, entry: &SignedStatement) {
    let id = entry.digest().to_string();
    let flags = ["--reason", "asked to", "--key", "keys/operator.pem", "--url", service.url(), "--json"];
    log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat()).must_succeed();
}

on_both_databases! {
    fn a_proven_page_has_all_entries_of_its_leaves(log: Log) {
        with_index(&log, 1);
        let service = log.serve();
        let mut connection = service.connection();
        for n in 0..30 {
            let subject = if n % 3 == 0 { "third" } else { "other" };
            register(&mut connection, &testkit::opaque(subject, &json!({ "n": n })));
        }
        let mut searcher = Searcher::of(&service);
        searcher.until_head_has_all(&["third", "other"]);
        let thirds = searcher.plain("subject=third");
        assert_eq!(thirds.len(), 10);
        let newest: Vec<u64> = thirds.iter().rev().copied().collect();
        assert_eq!(searcher.all("subject=third&limit=4"), thirds);
        assert_eq!(searcher.all("subject=third&limit=4&order=newest"), newest);
        let some = format!("subject=third&after={}&before={}", thirds[1], thirds[7]);
        assert_eq!(searcher.all(&some), thirds[2..7]);
        assert_eq!(searcher.all("subject=third&content_type=text/plain"), [0; 0]);
        let both = format!("subject=third&issuer={}&limit=3", testkit::ISSUER);
        assert_eq!(searcher.all(&both), thirds);
        assert_eq!(searcher.all("subject=nothing"), [0; 0]);
        let beyond = searcher.page("/v1/entries?subject=third&after=100000&proof=1");
        assert_eq!((beyond.entries.len(), beyond.leaves.0 == beyond.leaves.1, beyond.next), (0, true, None));

        // Only heads were registered since: no further one is made.
        let head = searcher.page("/v1/entries?subject=third&proof=1");
        let committed = connection.get("/v1/entries?order=newest&limit=1").json()["entries"][0]["index"].as_u64();
        sleep(Duration::from_millis(2_500));
        let newest = connection.get("/v1/entries?order=newest&limit=1").json()["entries"][0].clone();
        assert_eq!(newest["index"].as_u64(), committed);
        assert_eq!(newest["entry_id"], head.head_entry);
        let metrics = String::from_utf8(service.admin().get("/metrics").body).unwrap();
        assert!(metrics.contains(&format!("tabellion_index_head_size_leaves {}\n", head.size)), "{metrics}");
        service.stop();
        log.must_be_sound();
    }

    fn a_search_that_cannot_be_proven_is_refused_with_the_reason(log: Log) {
        let unindexed = log.serve();
        let answer = unindexed.connection().get("/v1/entries?subject=a&proof=1");
        assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("index-head-missing")));
        unindexed.stop();
        log.write_private("keys/index.pem", &testkit::verifier().to_pkcs8_pem().unwrap());
        log.set_policy(&policy(3600).replace("revision = 0", "revision = 1"));
        let service = log.serve();
        let mut connection = service.connection();
        let missing = connection.get("/v1/entries?subject=a&proof=1");
        assert_eq!((missing.status, &missing.json()["code"]), (503, &json!("index-head-missing")));
        missing.must_say_when_to_come_back();
        for query in ["subject_prefix=a&proof=1", "subject=a&agent_prefix=b&proof=1", "proof=1", "limit=3&proof=1"] {
            let answer = connection.get(&format!("/v1/entries?{query}"));
            assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("search-not-provable")), "{query}");
        }
        let answer = connection.get("/v1/entries?subject=a&proof=2");
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("search")));
    }

    fn an_erased_entry_is_listed_as_blind_under_the_next_head(log: Log) {
        with_index(&log, 1);
        let service = log.serve();
        let mut connection = service.connection();
        let entries: Vec<_> = (0..6).map(|n| testkit::opaque("thing", &json!({ "n": n }))).collect();
        let leaves: Vec<u64> = entries.iter().map(|entry| register(&mut connection, entry)).collect();
        erase(&log, &service, &entries[1]);
        let mut searcher = Searcher::of(&service);
        searcher.until_head_has(leaves[5] + 1);
        let without = |erased: &[usize]| -> Vec<u64> {
            (0..6).filter(|n| !erased.contains(n)).map(|n| leaves[n]).collect()
        };
        let mut becomes = |before: Vec<u64>, after: Vec<u64>| {
            let begun = Instant::now();
            loop {
                let page = searcher.page("/v1/entries?subject=thing&proof=1");
                if page.entries == after {
                    return page.blind;
                }
                assert_eq!(page.entries, before, "the head before the erasure proves what was there");
                assert!(begun.elapsed() < SOON, "no head follows the erasure: {page:?}");
            }
        };
        assert_eq!(becomes(leaves.clone(), without(&[1])), [(leaves[1], "erased".to_owned())]);
        erase(&log, &service, &entries[4]);
        let blind_leaves = becomes(without(&[1]), without(&[1, 4]));
        assert_eq!(blind_leaves, [(leaves[1], "erased".to_owned()), (leaves[4], "erased".to_owned())]);
        let plain = connection.get("/v1/entries?subject=thing").json();
        assert_eq!(blind(&plain), [(leaves[1], "erased".to_owned()), (leaves[4], "erased".to_owned())]);
        assert_eq!(plain["proof"], Value::Null);
        service.stop();
        log.must_be_sound();
    }

    fn after_a_restart_the_same_head_proves_answers_and_the_next_one_follows(log: Log) {
        with_index(&log, 1);
        let service = log.serve();
        for n in 0..10 {
            register(&mut service.connection(), &testkit::opaque("thing", &json!({ "n": n })));
        }
        let before = Searcher::of(&service).until_head_has_all(&["thing"]);
        let found = Searcher::of(&service).plain("subject=thing");
        service.kill();
        let service = log.serve();
        let mut searcher = Searcher::of(&service);
        let after = searcher.page("/v1/entries?subject=thing&proof=1");
        assert_eq!((after.size, &after.head_entry), (before.size, &before.head_entry));
        assert_eq!(after.entries, found);
        let newest = register(&mut service.connection(), &testkit::opaque("thing", &json!({ "n": 10 })));
        searcher.until_head_has(newest + 1);
        assert_eq!(searcher.all("subject=thing").len(), 11);
    }

    fn runs_and_tail_are_proven_together_while_the_log_grows_over_a_crash(log: Log) {
        with_index(&log, 1);
        let service = log.serve();
        register_many(&service, "before", RUN as usize);
        let mut searcher = Searcher::of(&service);
        // The first run is full, and is being written.
        service.kill();
        let service = log.serve();
        searcher.connection = service.connection();
        register_many(&service, "after", 512);
        searcher.until_head_has_all(&["first", "second"]);
        for order in ["oldest", "newest"] {
            let firsts = searcher.all(&format!("subject=first&limit=1000&order={order}"));
            assert_eq!(firsts.len() as u64, RUN / 2 + 256, "{order}");
            assert_eq!(firsts.iter().collect::<BTreeSet<_>>().len(), firsts.len());
        }
        // The list of all statements of the issuer bounds a page, although few of them match.
        let rare = format!("subject=nothing&issuer={}", testkit::ISSUER);
        let page = searcher.page(&format!("/v1/entries?{rare}&proof=1"));
        assert_eq!((page.entries.len(), page.next.is_some()), (0, true));
        assert!(page.leaves.1 < page.size, "{page:?}");
        assert_eq!(searcher.all(&rare), [0; 0]);
        service.stop();
        log.must_be_sound();
    }
}

#[test]
fn a_process_that_takes_over_proves_answers_and_makes_the_next_head() {
    let log = Log::postgres();
    with_index(&log, 1);
    let (leader, follower) = (log.serve(), log.serve());
    for n in 0..10 {
        register(&mut leader.connection(), &testkit::opaque("thing", &json!({ "n": n })));
    }
    let before = Searcher::of(&leader).until_head_has_all(&["thing"]);
    let mut searcher = Searcher::of(&follower);
    let page = searcher.until_head_has(before.size);
    assert_eq!(page.head_entry, before.head_entry, "the follower proves under the leader's head");
    assert_eq!(searcher.all("subject=thing").len(), 10);
    leader.kill();
    let (last, begun) = (testkit::opaque("thing", &json!({ "n": 10 })), Instant::now());
    while follower.connection().post(last.bytes()).status != 201 {
        assert!(begun.elapsed() < SOON, "the follower does not take over");
        sleep(Duration::from_millis(100));
    }
    searcher.until_head_has_all(&["thing"]);
    assert_eq!(searcher.all("subject=thing").len(), 11);
    drop(follower);
    log.must_be_sound();
}
