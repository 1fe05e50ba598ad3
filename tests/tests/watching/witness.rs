//! Our witness as processes: killed, doubled, asked by many at once, and by programs that none of us wrote.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use black_box::{Connection, Log, Loss, Lost, Power, Ran, WITNESS, WitnessHome, WitnessProcess, seed};
use ed25519_dalek::SigningKey;
use merkle::{CompactRange, Hash, LeafHash, NodeId, RootHash, TreeSize, hash_children, hash_leaf, proof};
use rustix::process::Signal;
use serde_json::Value;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, Note, NoteSigner};
use tlog::witness::AddCheckpoint;

/// Kills of one witness while logs hand in.
const KILLS: u64 = 12;
/// The log that they witness.
const LOG: &str = "log.example";

/// A log that can have two histories: the second has another leaf wherever this says.
struct Histories {
    key: LocalKey,
    fork: u64,
}

impl Histories {
    fn new(name: &str, fork: u64) -> Self {
        let key = LocalKey::new(name.parse().unwrap(), SigningKey::from_bytes(&[9; 32])).unwrap();
        Self { key, fork }
    }

    fn vkey(&self) -> String {
        self.key.key().to_string()
    }

    fn origin(&self) -> Origin {
        self.key.key().name().clone().into()
    }

    fn leaf(&self, index: u64) -> LeafHash {
        let lie = u64::from(index >= self.fork);
        hash_leaf(&[index.to_be_bytes(), lie.to_be_bytes()].concat())
    }

    fn root(&self, size: u64) -> RootHash {
        let mut range = CompactRange::default();
        (0..size).for_each(|index| range.append(self.leaf(index)));
        range.root()
    }

    fn node(&self, node: NodeId) -> Hash {
        match node.level {
            0 => self.leaf(node.index).into(),
            level => {
                let child = |index| self.node(NodeId { level: level - 1, index });
                hash_children(child(2 * node.index), child(2 * node.index + 1))
            }
        }
    }

    fn checkpoint(&self, size: u64) -> Note {
        let checkpoint = Checkpoint::new(self.origin(), TreeSize::new(size), self.root(size)).unwrap();
        checkpoint.sign(&self.key).unwrap()
    }

    fn request(&self, old: u64, size: u64) -> AddCheckpoint {
        let plan = proof::consistency(TreeSize::new(old), TreeSize::new(size)).ok();
        let proof = plan.map(|plan| plan.fold(|node| Ok::<_, ()>(self.node(node))).unwrap());
        AddCheckpoint {
            old: TreeSize::new(old),
            proof: proof.unwrap_or_default(),
            checkpoint: self.checkpoint(size),
        }
    }
}

/// The size and root of a checkpoint that the witness has cosigned, if it is one.
fn cosigned(note: &Note, body: &[u8], witness: &VerifierKey) -> (u64, RootHash) {
    let mut note = note.clone();
    let body = std::str::from_utf8(body).unwrap();
    body.split_inclusive('\n').for_each(|line| note.add(line.parse().unwrap()).unwrap());
    assert!(cosignature::verified(&note, witness).is_some(), "{body}");
    let checkpoint = Checkpoint::parse_text(note.text()).unwrap();
    (checkpoint.size().get(), checkpoint.root())
}

fn add(connection: &mut Connection, request: &AddCheckpoint) -> Option<(u16, Vec<u8>)> {
    let answer = connection.try_send("POST", "/add-checkpoint", &[], request.to_string().as_bytes());
    answer.ok().map(|answer| (answer.status, answer.body))
}

fn seen(witness: &WitnessProcess, log: &Histories) -> Option<u64> {
    let answer = witness.connection().get(&format!("/{}/checkpoint", log.origin().digest()));
    let note = (answer.status == 200).then(|| Note::parse(&answer.body).unwrap())?;
    Some(Checkpoint::parse_text(note.text()).unwrap().size().get())
}

/// Hands in what it can until told to stop; gives the sizes and roots that were cosigned.
fn hand_in(log: &Histories, step: u64, witness: &WitnessProcess, done: &AtomicBool) -> Vec<(u64, RootHash)> {
    let key = witness.vkey().parse().unwrap();
    let mut connection = witness.connection().patient_for(Duration::from_secs(5));
    let (mut old, mut heard) = (0, Vec::new());
    while !done.load(Ordering::Relaxed) {
        let request = log.request(old, old + step);
        match add(&mut connection, &request) {
            Some((200, body)) => {
                heard.push(cosigned(&request.checkpoint, &body, &key));
                old += step;
            }
            Some((409, body)) => old = read_size(&body),
            Some((status, _)) => assert_eq!(status, 422),
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
    heard
}

fn read_size(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().strip_suffix('\n').unwrap().parse().unwrap()
}

#[test]
fn killed_at_any_time_a_witness_forgets_nothing_that_it_cosigned() {
    let home = WitnessHome::of(&[&Histories::new(LOG, u64::MAX).vkey()]);
    forgets_nothing(&home, || home.serve(), |_| ());
}

#[test]
fn r08_a_witness_whose_power_is_lost_forgets_nothing_that_it_cosigned() {
    seed();
    let home = WitnessHome::of(&[&Histories::new(LOG, u64::MAX).vkey()]);
    home.serve().stop();
    let power = Power::of(home.folder());
    power.watch();
    let mut lost = 0;
    let start = || home.start_with("127.0.0.1:0", &power.variables()).unwrap();
    forgets_nothing(&home, start, |round| {
        let loss = if round % 2 == 0 { Loss::Everything } else { Loss::Some };
        let Lost { writes, names } = power.lose(loss);
        lost += writes + names;
    });
    assert!(lost > 0, "nothing was at stake");
}

/// Kills it again and again while logs hand in, one of them with a second history; `after` each kill something may happen.
#[track_caller]
fn forgets_nothing(home: &WitnessHome, start: impl Fn() -> WitnessProcess, mut after: impl FnMut(u64)) {
    let honest = Histories::new(LOG, u64::MAX);
    let (mut promised, mut kill) = (0, 0);
    // More often where a busy machine gets little done before it is killed.
    while kill < KILLS || (promised <= KILLS && kill < 10 * KILLS) {
        let witness = start();
        let known = seen(&witness, &honest).unwrap_or(0);
        assert!(known >= promised, "it knows of {known}, and has cosigned {promised}");
        // From its last leaf on, the tree that was cosigned is denied: by the log's own key, and with proofs.
        let liar = Histories::new(LOG, known.saturating_sub(1));
        let done = AtomicBool::new(false);
        let heard = thread::scope(|scope| {
            let writers = [(&honest, 1), (&honest, 3)];
            let (witness, done, liar) = (&witness, &done, &liar);
            let writers = writers.map(|(log, step)| scope.spawn(move || hand_in(log, step, witness, done)));
            let lies = (known > 0).then(|| scope.spawn(move || hand_in(liar, 2, witness, done)));
            thread::sleep(Duration::from_millis(40 + 17 * (kill % KILLS)));
            witness.signal(Signal::KILL);
            done.store(true, Ordering::Relaxed);
            let lies = lies.map(|lies| lies.join().unwrap()).unwrap_or_default();
            assert_eq!(lies, [], "a second history is cosigned");
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        for (size, root) in heard {
            assert_eq!(root, honest.root(size));
            promised = promised.max(size);
        }
        witness.kill();
        after(kill);
        kill += 1;
    }
    assert!(promised > KILLS, "too little was cosigned to tell");
    let witness = home.serve();
    assert!(seen(&witness, &honest).unwrap() >= promised);
    witness.stop();
}

#[test]
fn a_second_process_on_the_same_state_is_refused_and_the_first_goes_on() {
    let log = Histories::new(LOG, u64::MAX);
    let home = WitnessHome::of(&[&log.vkey()]);
    let first = home.serve();
    let refused = home.start().err().unwrap();
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("\"witness-in-use\""), "{refused}");
    assert_eq!(add(&mut first.connection(), &log.request(0, 3)).unwrap().0, 200);
    first.kill();
    let second = home.serve();
    assert_eq!(seen(&second, &log), Some(3));
    second.stop();
}

#[test]
fn a_witness_with_a_state_that_it_cannot_read_says_so_and_does_not_start() {
    let log = Histories::new(LOG, u64::MAX);
    let home = WitnessHome::of(&[&log.vkey()]);
    let witness = home.serve();
    assert_eq!(add(&mut witness.connection(), &log.request(0, 3)).unwrap().0, 200);
    witness.kill();
    let file = home.path("state/logs").join(log.origin().digest());
    let good = fs::read(&file).unwrap();
    let damaged = || {
        let refused = home.start().err().unwrap();
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("\"witness-state-damaged\""), "{refused}");
    };
    fs::write(&file, &good[..good.len() - 9]).unwrap();
    damaged();
    fs::remove_file(&file).unwrap();
    damaged();
    fs::write(&file, good).unwrap();
    // A key whose state is somewhere else.
    fs::rename(home.path("state"), home.path("elsewhere")).unwrap();
    fs::create_dir(home.path("state")).unwrap();
    fs::copy(home.path("elsewhere/key.pem"), home.path("state/key.pem")).unwrap();
    let refused = home.start().err().unwrap();
    assert!(refused.stderr.contains("\"witness-state-missing\""), "{refused}");
}

#[test]
fn what_deploy_holds_for_a_witness_can_be_used() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let home = WitnessHome::of(&[]);
    fs::copy(repository.join("witness-logs.txt"), home.path("logs.txt")).unwrap();
    let witness = home.serve();
    let metrics = witness.admin().get("/metrics").body;
    assert!(String::from_utf8(metrics).unwrap().contains("\nwitness_logs 1\n"));
    witness.stop();
    let unit = fs::read_to_string(repository.join("tabellion-witness.service")).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/tabellion ")).unwrap();
    let arguments: Vec<&str> = start.split(' ').chain(["--help"]).collect();
    home.tabellion(&arguments).must_succeed();
}

#[test]
fn the_list_is_read_again_when_the_process_is_told_to() {
    let log = Histories::new(LOG, u64::MAX);
    let home = WitnessHome::of(&[]);
    let witness = home.serve();
    assert_eq!(add(&mut witness.connection(), &log.request(0, 3)).unwrap().0, 404);
    home.witness(&[&log.vkey()]);
    witness.signal(Signal::HUP);
    let begun = Instant::now();
    while add(&mut witness.connection(), &log.request(0, 3)).unwrap().0 == 404 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(seen(&witness, &log), Some(3));
    witness.stop();
}

#[test]
fn a_log_of_ours_is_handed_in_by_hand_and_its_cosigned_checkpoint_verifies() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, 3);
    let vkey = log.vkey();
    let home = WitnessHome::of(&[&vkey]);
    let witness = home.serve();
    let key: VerifierKey = witness.vkey().parse().unwrap();
    let url = witness.url();
    let submit = [
        &["witness", "submit", "--json", "--log", service.url(), "--witness", &url][..],
        &["--log-key", &vkey, "--key", witness.vkey(), "-o", "cosigned"],
    ]
    .concat();
    let mut sizes = Vec::new();
    for entries in [0, 5, 0] {
        log.register(&service, entries);
        let ran = home.tabellion(&submit);
        let told = ran.must_succeed().json();
        assert!(told["cosigned_at"].is_string(), "{told}");
        let size = told["size"].as_u64().unwrap();
        let note = Note::parse(&fs::read(home.path("cosigned")).unwrap()).unwrap();
        assert!(cosignature::verified(&note, &key).is_some());
        let log_key = vkey.parse().unwrap();
        let checkpoint = Checkpoint::open(note.to_string().as_bytes(), &origin(&vkey), &[log_key]).unwrap();
        assert_eq!(checkpoint.size().get(), size);
        sizes.push(size);
    }
    assert_eq!(sizes[1], sizes[0] + 5);
    assert_eq!(sizes[2], sizes[1]);
    // People get the line itself, and are told that nobody checked it.
    let ran = home.tabellion(&["witness", "submit", "--log", service.url(), "--witness", &url]);
    let line = ran.must_succeed().stdout.clone();
    assert!(line.starts_with(&format!("\u{2014} {WITNESS} ")), "{ran}");
    assert!(ran.stderr.contains("not checked"), "{ran}");
    service.stop();
    witness.stop();
}

#[test]
fn what_keeps_a_checkpoint_from_being_cosigned_is_told_by_its_exit() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, 3);
    let home = WitnessHome::of(&[]);
    let witness = home.serve();
    let submit = |log: &str, witness: &str, more: &[&str]| {
        let first = ["witness", "submit", "--json", "--log", log, "--witness", witness];
        home.tabellion(&[&first[..], more].concat())
    };
    let failed = |ran: Ran, code: i32, word: &str| {
        assert_eq!(ran.code, Some(code), "{ran}");
        assert!(ran.stderr.contains(&format!("\"{word}\"")), "{ran}");
        assert!(ran.stdout.is_empty(), "{ran}");
    };
    failed(submit(service.url(), &witness.url(), &[]), 6, "witness-unknown-log");
    witness.stop();
    home.witness(&[&log.vkey()]);
    let witness = home.serve();
    // Another key, for the log or for the witness.
    let other = Histories::new(LOG, 0).key;
    let log_key = other.key().to_string();
    failed(submit(service.url(), &witness.url(), &["--log-key", &log_key]), 3, "checkpoint-not-signed");
    let secret = SigningKey::from_bytes(&[9; 32]);
    let key = VerifierKey::cosigner(WITNESS.parse().unwrap(), secret.verifying_key()).unwrap().to_string();
    failed(submit(service.url(), &witness.url(), &["--key", &key]), 3, "cosignature-bad");
    submit(service.url(), &witness.url(), &[]).must_succeed();
    // Another log under the same key: smaller than what was cosigned, and then larger and not the same.
    let fork = Log::sqlite();
    fs::copy(log.path("keys/checkpoint.pem"), fork.path("keys/checkpoint.pem")).unwrap();
    let forked = fork.serve();
    let url = forked.url().to_owned();
    failed(submit(&url, &witness.url(), &[]), 8, "witness-ahead");
    fork.register(&forked, 9);
    failed(submit(&url, &witness.url(), &[]), 8, "witness-unproven");
    let gone = witness.url();
    witness.stop();
    failed(submit(&url, &gone, &[]), 7, "unreachable");
    forked.stop();
    failed(submit(&url, &gone, &[]), 7, "unreachable");
    service.stop();
}

#[test]
fn a_client_of_a_second_implementation_has_its_log_witnessed() {
    let home = WitnessHome::of(&[]);
    let keys = python(&["keys", path(&home.path("log.pem"))]);
    home.witness(&[keys["vkey"].as_str().unwrap()]);
    let witness = home.serve();
    let told = python(&["client", &witness.url(), witness.vkey(), path(&home.path("log.pem"))]);
    assert_eq!(told["cosigned"].as_u64().unwrap(), told["grown"].as_u64().unwrap());
    assert!(told["refused"].as_u64().unwrap() >= 8, "{told}");
    witness.stop();
}

#[test]
fn our_log_is_handed_to_a_witness_of_a_second_implementation() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, 3);
    let vkey = log.vkey();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/witness.py");
    let mut other = Command::new(black_box::python())
        .arg(script)
        .args(["serve", &vkey])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let (url, key) = (told["url"].as_str().unwrap(), told["vkey"].as_str().unwrap());
    for entries in [0, 300, 0, 1] {
        log.register(&service, entries);
        let submit = ["witness", "submit", "--json", "--log", service.url(), "--witness", url, "--key", key];
        assert!(log.tabellion(&submit).must_succeed().json()["cosigned_at"].is_string());
    }
    other.kill().unwrap();
    other.wait().unwrap();
    service.stop();
}

fn origin(vkey: &str) -> Origin {
    vkey.split('+').next().unwrap().parse().unwrap()
}

fn python(arguments: &[&str]) -> Value {
    black_box::run_python("witness.py", arguments)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The same history, signed with another key of the same name.
fn successor_of(log: &Histories) -> Histories {
    let name = log.key.key().name().to_string();
    let key = LocalKey::new(name.parse().unwrap(), SigningKey::from_bytes(&[8; 32])).unwrap();
    Histories { key, fork: log.fork }
}

#[test]
fn r52_what_a_retired_or_compromised_key_signs_beyond_its_size_is_not_cosigned() {
    let old = Histories::new(LOG, u64::MAX);
    let new = successor_of(&old);
    let listed = |end: u64| format!("{}\nretired {} {end}", new.vkey(), old.vkey());
    let home = WitnessHome::of(&[&listed(8)]);
    let witness = home.serve();
    let add = |witness: &WitnessProcess, log: &Histories, from: u64, to: u64| {
        add(&mut witness.connection(), &log.request(from, to)).unwrap().0
    };
    assert_eq!(add(&witness, &old, 0, 4), 200, "before its retirement");
    assert_eq!(add(&witness, &old, 4, 8), 403, "after its retirement");
    assert_eq!(seen(&witness, &old), Some(4));
    witness.stop();

    // That the key was compromised at a smaller size is found out later.
    home.witness(&[&listed(6)]);
    let witness = home.serve();
    assert_eq!(add(&witness, &old, 4, 7), 403, "beyond the size at which it was compromised");
    assert_eq!(add(&witness, &old, 4, 5), 200, "before that");
    assert_eq!(add(&witness, &new, 5, 7), 200, "its successor");
    assert_eq!(add(&witness, &new, 7, 9), 200, "its successor");
    assert_eq!(seen(&witness, &new), Some(9));
    witness.stop();
}
