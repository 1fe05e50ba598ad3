//! tlog-witness, to the byte, over real HTTP.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{SystemTime, UNIX_EPOCH};

use common::{Answer, Home, Log, NAME};
use data_encoding::BASE64;
use ed25519_dalek::{Signature, Verifier};
use merkle::{RootHash, TreeSize};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::Note;
use tlog::witness::AddCheckpoint;

const LOG: &str = "log.example";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Takes a body apart without the code under test.
#[track_caller]
fn time_of(answer: &Answer, key: &VerifierKey, text: &str) -> u64 {
    answer.must_be(200);
    let line = answer.body.strip_suffix('\n').unwrap();
    let (name, blob) = line.strip_prefix("\u{2014} ").unwrap().split_once(' ').unwrap();
    assert_eq!(name, NAME);
    let blob = BASE64.decode(blob.as_bytes()).unwrap();
    assert_eq!(blob.len(), 4 + 8 + 64);
    assert_eq!(blob[..4], key.id().get().to_be_bytes());
    let time = u64::from_be_bytes(blob[4..12].try_into().unwrap());
    let message = format!("cosignature/v1\ntime {time}\n{text}");
    let signature = Signature::from_slice(&blob[12..]).unwrap();
    key.verifying_key().verify(message.as_bytes(), &signature).unwrap();
    time
}

#[tokio::test]
async fn a_first_checkpoint_is_cosigned_with_the_time_at_which_it_was() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let before = now();
    let answer = witness.add(&log.request(0, 5)).await;
    let time = time_of(&answer, &witness.key, &log.text(5));
    assert!((before..=now()).contains(&time));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[tokio::test]
async fn every_growth_of_small_trees_is_cosigned_and_every_other_proof_is_not() {
    for old in 0..=9 {
        for size in old..=9 {
            let log = Log::new(LOG);
            let home = Home::of(&[&log]);
            let witness = home.start().await;
            if old > 0 {
                witness.add(&log.request(0, old)).await.must_be(200);
            }
            let right = log.request(old, size);
            let mut longer = right.clone();
            longer.proof.push(merkle::Hash::from_bytes([1; 32]));
            witness.add(&longer).await.must_be(422);
            if let Some(shorter) = right.proof.len().checked_sub(1) {
                let mut wrong = right.clone();
                wrong.proof.truncate(shorter);
                witness.add(&wrong).await.must_be(422);
            }
            time_of(&witness.add(&right).await, &witness.key, &log.text(size));
            witness.stop().await;
        }
    }
}

#[tokio::test]
async fn monitors_see_the_newest_checkpoint_with_the_signatures_of_the_log_and_the_witness() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.latest(&log).await.must_be(404);
    witness.add(&log.request(0, 3)).await.must_be(200);
    let mut request = log.request(3, 300);
    // A stranger's signature is ignored, and not handed on.
    let stranger = Log::new("stranger.example");
    let strange = Note::sign(request.checkpoint.text(), &[&stranger.key]).unwrap();
    request.checkpoint.add(strange.signatures()[0].clone()).unwrap();
    witness.add(&request).await.must_be(200);

    let answer = witness.latest(&log).await;
    answer.must_be(200);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    let note = Note::parse(answer.body.as_bytes()).unwrap();
    assert_eq!(note.text(), log.text(300));
    assert_eq!(note.signatures().len(), 2);
    note.verify(std::slice::from_ref(log.vkey())).unwrap();
    assert!(cosignature::verified(&note, &witness.key).is_some());
}

#[tokio::test]
async fn a_checkpoint_that_has_not_grown_is_cosigned_again_later() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let first = time_of(&witness.add(&log.request(0, 4)).await, &witness.key, &log.text(4));
    while now() <= first {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let second = time_of(&witness.add(&log.request(4, 4)).await, &witness.key, &log.text(4));
    assert!(second > first);
    let shown = Note::parse(witness.latest(&log).await.body.as_bytes()).unwrap();
    assert_eq!(cosignature::verified(&shown, &witness.key), Some(second));
}

#[tokio::test]
async fn an_old_size_that_is_not_the_one_seen_is_answered_with_that_one() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let size = async |old, size| {
        let answer = witness.add(&log.request(old, size)).await;
        answer.must_be(409);
        assert_eq!(answer.header("content-type"), Some("text/x.tlog.size"));
        answer.body
    };
    assert_eq!(size(1, 2).await, "0\n");
    witness.add(&log.request(0, 8)).await.must_be(200);
    assert_eq!(size(0, 8).await, "8\n");
    assert_eq!(size(0, 300).await, "8\n");
    assert_eq!(size(7, 300).await, "8\n");
    assert_eq!(size(9, 300).await, "8\n");
    // Going back is not even asked for with a proof.
    assert_eq!(size(3, 4).await, "8\n");
    witness.add(&log.request(8, 300)).await.must_be(200);
    assert_eq!(size(8, 300).await, "300\n");
}

#[tokio::test]
async fn a_log_that_is_not_listed_is_not_found_whoever_signs() {
    let (log, other) = (Log::new(LOG), Log::new("other.example"));
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&other.request(0, 1)).await.must_be(404);
    let mut request = other.request(0, 1);
    request.checkpoint = Note::sign(&other.text(1), &[&log.key]).unwrap();
    witness.add(&request).await.must_be(404);
    witness.latest(&other).await.must_be(404);
    witness.get("/").await.must_be(404);
    witness.get("/../logs/checkpoint").await.must_be(404);
}

#[tokio::test]
async fn what_the_log_has_not_signed_is_forbidden() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let mut request = log.request(0, 2);
    // By nobody known.
    request.checkpoint = Note::sign(&log.text(2), &[&Log::new("other.example").key]).unwrap();
    witness.add(&request).await.must_be(403);
    // By the log, but something else.
    let other = log.checkpoint(3).signatures()[0].clone();
    request.checkpoint = Note::from_parts(&log.text(2), vec![other.clone()]).unwrap();
    witness.add(&request).await.must_be(403);
    // One good signature does not make up for a bad one of the same key.
    request.checkpoint = log.checkpoint(2);
    request.checkpoint.add(other).unwrap();
    witness.add(&request).await.must_be(403);
    // Not signed is told before anything about sizes is: strangers learn nothing of them here.
    request.old = TreeSize::new(77);
    witness.add(&request).await.must_be(403);
    witness.latest(&log).await.must_be(404);
}

#[tokio::test]
async fn what_is_no_request_is_bad() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 4)).await.must_be(200);
    let good = log.request(4, 300).to_string();
    let line = |text: &str| good.replacen("old 4\n", text, 1);
    let many = format!("old 4\n{}", format!("{}\n", BASE64.encode(&[0; 32])).repeat(64));
    for bad in [
        String::new(),
        "\n".into(),
        log.checkpoint(4).to_string(),
        line("old  4\n"),
        line("old 04\n"),
        line("old +4\n"),
        line("old -4\n"),
        line("old 4 \n"),
        line("Old 4\n"),
        line("old 4\r\n"),
        line("old 18446744073709551616\n"),
        line("4\n"),
        line("old 4\nAAAA\n"),
        line(&many),
        good.trim_end().to_owned(),
        good.replace("\n\n", "\n"),
        good.replace("\n300\n", "\n0300\n"),
    ] {
        let answer = witness.post(bad.as_bytes()).await;
        let expected = if bad.contains("\n0300\n") { 403 } else { 400 };
        assert_eq!(answer.status, expected, "{bad:?}: {answer:?}");
        assert!(answer.body.ends_with('\n') && answer.body.lines().count() == 1, "{answer:?}");
    }
    witness.post(b"old 0\n\n\xff\n\n").await.must_be(400);
    // An old size beyond the checkpoint's.
    witness.add(&log.request(4, 3)).await.must_be(400);
    assert_eq!(witness.seen(&log).await, 4);
    witness.post(good.as_bytes()).await.must_be(200);
}

#[tokio::test]
async fn what_the_log_signed_and_is_no_checkpoint_is_bad() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let root = BASE64.encode(log.root(1).as_bytes());
    for text in [
        format!("{LOG}\n"),
        format!("{LOG}\n1\n"),
        format!("{LOG}\n01\n{root}\n"),
        format!("{LOG}\n1\nAAAA\n"),
        format!("{LOG}\n1\n{root}\n\nextension\n"),
    ] {
        let checkpoint = Note::sign(&text, &[&log.key]).unwrap();
        let request = AddCheckpoint { old: TreeSize::EMPTY, proof: Vec::new(), checkpoint };
        let answer = witness.add(&request).await;
        assert_eq!(answer.status, 400, "{text:?}: {answer:?}");
    }
    // Extension lines are cosigned with the rest.
    let text = format!("{LOG}\n1\n{root}\nextension\n");
    let checkpoint = Note::sign(&text, &[&log.key]).unwrap();
    let request = AddCheckpoint { old: TreeSize::EMPTY, proof: Vec::new(), checkpoint };
    time_of(&witness.add(&request).await, &witness.key, &text);
}

#[tokio::test]
async fn what_does_not_extend_what_was_seen_is_not_processed_and_changes_nothing() {
    let (log, liar) = (Log::new(LOG), Log::forked(LOG, 5));
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    // From nothing, nothing is proven.
    let mut request = log.request(0, 8);
    request.proof = log.proof(4, 8);
    witness.add(&request).await.must_be(422);
    // The empty tree has one root.
    let text = format!("{LOG}\n0\n{}\n", BASE64.encode(&[0; 32]));
    let checkpoint = Note::sign(&text, &[&log.key]).unwrap();
    let empty = AddCheckpoint { old: TreeSize::EMPTY, proof: Vec::new(), checkpoint };
    witness.add(&empty).await.must_be(422);
    witness.latest(&log).await.must_be(404);

    witness.add(&log.request(0, 8)).await.must_be(200);
    // Forked, with a proof from its own past, or with an honest one.
    witness.add(&liar.request(8, 300)).await.must_be(422);
    let mut request = liar.request(8, 300);
    request.proof = log.proof(8, 300);
    witness.add(&request).await.must_be(422);
    // Equal sizes, another root.
    witness.add(&liar.request(8, 8)).await.must_be(422);
    // Equal sizes, equal roots, and a proof of it.
    let mut request = log.request(8, 8);
    request.proof = log.proof(4, 8);
    witness.add(&request).await.must_be(422);
    assert_eq!(witness.seen(&log).await, 8);
    witness.add(&log.request(8, 300)).await.must_be(200);
}

#[tokio::test]
async fn a_fork_is_kept_as_two_checkpoints_that_speak_for_themselves() {
    let (log, liar) = (Log::new(LOG), Log::forked(LOG, 5));
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    for _ in 0..2 {
        witness.add(&liar.request(8, 8)).await.must_be(422);
    }
    let folder = home.file("forks").join(log.origin.digest());
    let mut roots: Vec<RootHash> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let note = std::fs::read(file.unwrap().path()).unwrap();
            let keys = std::slice::from_ref(log.vkey());
            let checkpoint = Checkpoint::open(&note, &log.origin, keys).unwrap();
            assert_eq!(checkpoint.size().get(), 8);
            checkpoint.root()
        })
        .collect();
    roots.sort_unstable_by_key(|root| *root != log.root(8));
    assert_eq!(roots, [log.root(8), liar.root(8)]);
    let metrics = common::get(witness.admin, "/metrics").await.body;
    assert!(metrics.contains("witness_inconsistency_total{log=\"log.example\"} 2"), "{metrics}");
}

#[tokio::test]
async fn of_many_requests_at_one_time_one_history_is_cosigned() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    let requests: Vec<_> = (9..41).map(|size| (size, log.request(8, size))).collect();
    let answers = requests.iter().map(async |(size, request)| (*size, witness.add(request).await));
    let answers = futures::future::join_all(answers).await;
    let cosigned: Vec<u64> =
        answers.iter().filter(|(_, answer)| answer.status == 200).map(|(size, _)| *size).collect();
    let [winner] = cosigned[..] else { panic!("{cosigned:?}") };
    for (size, answer) in answers.iter().filter(|(size, _)| *size != winner) {
        assert_eq!(answer.must_be(409).body, format!("{winner}\n"), "{size}");
    }
    assert_eq!(witness.seen(&log).await, winner);
}

#[tokio::test]
async fn logs_do_not_wait_for_each_other_and_an_origin_may_differ_from_the_keys_name() {
    let first = Log::new("one.example");
    let mut second = Log::new("two.example");
    second.origin = "a name of its own".parse::<Origin>().unwrap();
    let home = Home::of(&[]);
    home.list(&format!(
        "{}qpd 86400\n\n# the second\nvkey {}\norigin a name of its own\n\tcontact somebody\n",
        first.listed(),
        second.vkey()
    ));
    let witness = home.start().await;
    for (old, size) in [(0, 2), (2, 5)] {
        for log in [&first, &second] {
            time_of(&witness.add(&log.request(old, size)).await, &witness.key, &log.text(size));
        }
    }
    assert_eq!((witness.seen(&first).await, witness.seen(&second).await), (5, 5));
}

#[tokio::test]
async fn what_is_too_long_or_asked_in_another_way_is_refused() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.post(&vec![b'A'; 400 << 10]).await.must_be(413);
    let answer = witness.get("/add-checkpoint").await;
    assert_eq!(answer.must_be(405).header("allow"), Some("POST"));
    let huge = format!("GET / HTTP/1.1\r\nhost: w\r\nx: {}\r\n\r\n", "x".repeat(20 << 10));
    common::exchange(witness.address, huge.as_bytes()).await.must_be(431);
    for address in [witness.address, witness.admin] {
        let nameless = b"GET /openapi.json HTTP/1.1\r\nconnection: close\r\n\r\n";
        common::exchange(address, nameless).await.must_be(400);
    }
    witness.add(&log.request(0, 1)).await.must_be(200);
}

#[tokio::test]
async fn metrics_and_health_have_a_listener_of_their_own() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 5)).await.must_be(200);
    witness.add(&log.request(0, 5)).await.must_be(409);
    assert_eq!(common::get(witness.admin, "/livez").await.must_be(200).body, "alive\n");
    assert_eq!(common::get(witness.admin, "/readyz").await.must_be(200).body, "ready\n");
    let metrics = common::get(witness.admin, "/metrics").await.body;
    for line in [
        "witness_add_checkpoint_requests_total{status=\"200\"} 1",
        "witness_add_checkpoint_requests_total{status=\"409\"} 1",
        "witness_log_size_leaves{log=\"log.example\"} 5",
        "witness_logs 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    witness.get("/metrics").await.must_be(404);
}
