//! The tree as tlog monitors read it (C2SP tlog-checkpoint and tlog-tiles), and proofs over HTTP.

use std::time::Duration;

use crate::common::{Place, Site, refusal, statement};
use merkle::tile::{TileId, TilePath};
use merkle::{CompactRange, EntryDigest, Hash, LeafHash, LeafIndex, RootHash, TreeSize, verify};
use reqwest::Method;
use scitt::{KeySet, PublicKey, Receipt};
use serde_json::json;
use tlog::checkpoint::Checkpoint;
use tlog::key::VerifierKey;
use tlog::proof::TlogProof;

/// A log of this size, entry 0 and what was registered after it.
async fn log_of(size: u64) -> (Site, Vec<EntryDigest>) {
    let site = Place::new().start().await;
    let first = site.get("/v1/policy").await.json()["entry_id"].as_str().unwrap().parse().unwrap();
    let mut digests = vec![first];
    for n in 1..size {
        let one = statement(n);
        site.registered(&one).await;
        digests.push(one.digest());
    }
    (site, digests)
}

async fn checkpoint(site: &Site) -> Checkpoint {
    let answer = site.get("/checkpoint").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(answer.header("cache-control").unwrap().contains("max-age=1"));
    let keys = [key(site)];
    Checkpoint::open(&answer.body, &testkit::ORIGIN.parse().unwrap(), &keys).unwrap()
}

fn key(site: &Site) -> VerifierKey {
    site.service.identity().checkpoint_key.parse().unwrap()
}

async fn receipt_key(site: &Site) -> PublicKey {
    let keys = KeySet::parse(&site.get("/.well-known/scitt-keys").await.body).unwrap();
    keys.keys()[0].key.clone()
}

fn root_of(digests: &[EntryDigest]) -> RootHash {
    let leaves: Vec<LeafHash> = digests.iter().map(EntryDigest::leaf_hash).collect();
    CompactRange::empty().grow(&leaves).root()
}

fn path(view: &serde_json::Value) -> Vec<Hash> {
    let hashes = view["path"].as_array().unwrap().iter();
    hashes.map(|hash| Hash::from_bytes(*digest(hash.as_str().unwrap()).as_bytes())).collect()
}

fn digest(hex: &str) -> EntryDigest {
    hex.parse().unwrap()
}

#[tokio::test]
async fn the_checkpoint_is_signed_and_covers_every_receipt_given() {
    let (site, digests) = log_of(7).await;
    let checkpoint = checkpoint(&site).await;
    assert_eq!((checkpoint.size().get(), checkpoint.root()), (7, root_of(&digests)));
}

#[tokio::test]
async fn a_cache_is_told_that_the_checkpoint_is_still_the_same() {
    let (site, _) = log_of(2).await;
    let etag = site.get("/checkpoint").await.header("etag").unwrap().to_owned();
    let again = site.send(Method::GET, "/checkpoint", &[("if-none-match", &etag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    site.registered(&statement(50)).await;
    let newer = site.send(Method::GET, "/checkpoint", &[("if-none-match", &etag)], "").await;
    assert_eq!(newer.status, 200);
}

#[tokio::test]
async fn the_tree_can_be_made_from_its_tiles_alone() {
    let (site, digests) = log_of(9).await;
    let size = checkpoint(&site).await.size();
    let tile = TileId::at(0, 0, size).unwrap();
    let answer = site.get(&format!("/{}", TilePath::Hashes(tile))).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
    assert!(answer.header("cache-control").unwrap().contains("immutable"));
    let expected: Vec<u8> = digests.iter().flat_map(|digest| *digest.leaf_hash().as_bytes()).collect();
    assert_eq!(answer.body, expected);
    let bundle = site.get("/tile/entries/000.p/9").await;
    let entries: Vec<u8> =
        digests.iter().flat_map(|digest| [&[0, 32], &digest.as_bytes()[..]].concat()).collect();
    assert_eq!(bundle.body, entries);
}

#[tokio::test]
async fn every_size_that_was_published_keeps_its_partial_tile() {
    let (site, digests) = log_of(6).await;
    for width in 1..=6 {
        let answer = site.get(&format!("/tile/0/000.p/{width}")).await;
        assert_eq!((answer.status, answer.body.len()), (200, width * 32), "{width}");
        assert_eq!(answer.body[..32], digests[0].leaf_hash().as_bytes()[..]);
    }
}

#[tokio::test]
async fn what_no_published_tree_has_is_not_there() {
    let (site, _) = log_of(6).await;
    for path in [
        "/tile/0/000",
        "/tile/0/000.p/7",
        "/tile/0/001.p/1",
        "/tile/1/000.p/1",
        "/tile/0/0",
        "/tile/0/x000/000.p/1",
        "/tile/0/000.p/0",
        "/tile/64/000",
        "/tile/entries/000",
        "/tile/entries/000.p/7",
        "/tile/data/000.p/1",
        "/tile/0/../checkpoint",
        "/tile/",
        "/tile/0/000.p/1/",
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/concise-problem-details+cbor"), "{path}");
    }
}

#[tokio::test]
async fn every_leaf_is_proven_in_every_tree_that_has_it() {
    let (site, digests) = log_of(6).await;
    for size in 1..=6_u64 {
        for index in 0..size {
            let view = site.get(&format!("/v1/proof/inclusion?index={index}&size={size}")).await.json();
            let root = root_of(&digests[..size as usize]);
            let leaf = digests[index as usize];
            assert_eq!(
                (view["entry_id"].as_str(), view["root"].as_str()),
                (Some(&*leaf.to_string()), Some(&*root.to_string()))
            );
            let (at, size) = (LeafIndex::new(index), TreeSize::new(size));
            verify::inclusion(leaf.leaf_hash(), at, size, &path(&view), root).unwrap();
        }
    }
}

#[tokio::test]
async fn each_tree_is_proven_to_be_the_beginning_of_each_larger_one() {
    let (site, digests) = log_of(7).await;
    for second in 2..=7_usize {
        for first in 1..second {
            let view = site.get(&format!("/v1/proof/consistency?first={first}&second={second}")).await.json();
            let sizes = (TreeSize::new(first as u64), TreeSize::new(second as u64));
            let roots = (root_of(&digests[..first]), root_of(&digests[..second]));
            verify::consistency(sizes.0, sizes.1, roots.0, roots.1, &path(&view)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_tree_that_did_not_grow_needs_no_proof() {
    let (site, _) = log_of(3).await;
    let path = "/v1/proof/consistency?first=3&second=3";
    assert_eq!(site.get(path).await.json(), json!({ "first": 3, "second": 3, "path": [] }));
    let wanted = [("accept", "application/cose")];
    assert_eq!(site.send(Method::GET, path, &wanted, "").await.status, 400, "no receipt says so");
}

#[tokio::test]
async fn consistency_comes_as_a_receipt_that_verifies_from_the_older_root() {
    let (site, digests) = log_of(5).await;
    let wanted = [("accept", "application/scitt-receipt+cose")];
    let answer = site.send(Method::GET, "/v1/proof/consistency?first=2", &wanted, "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/scitt-receipt+cose")));
    let receipt = Receipt::parse(answer.body.clone()).unwrap();
    let key = receipt_key(&site).await;
    let newer = receipt.verify_consistency(TreeSize::new(2), &root_of(&digests[..2]), &key).unwrap();
    assert_eq!(newer, root_of(&digests));
    assert!(receipt.verify_consistency(TreeSize::new(2), &root_of(&digests[..3]), &key).is_err());
}

#[tokio::test]
async fn a_proof_file_is_checked_with_nothing_but_the_leaf_and_the_key() {
    let (site, digests) = log_of(5).await;
    let wanted = [("accept", "text/x.tlog.proof")];
    let path = format!("/v1/proof/inclusion?entry_id={}", digests[3]);
    let answer = site.send(Method::GET, &path, &wanted, "").await;
    let proof: TlogProof = std::str::from_utf8(&answer.body).unwrap().parse().unwrap();
    let origin = testkit::ORIGIN.parse().unwrap();
    assert_eq!(proof.verify(digests[3].leaf_hash(), &origin, &[key(&site)]).unwrap().size().get(), 5);
    assert!(proof.verify(digests[2].leaf_hash(), &origin, &[key(&site)]).is_err());
}

#[tokio::test]
async fn caches_keep_each_form_of_a_proof_by_itself_and_the_newest_not_for_long() {
    let (site, _) = log_of(5).await;
    for (query, age) in [
        ("inclusion?index=1", "max-age=1"),
        ("inclusion?index=1&size=5", "max-age=60"),
        ("consistency?first=3", "max-age=1"),
        ("consistency?first=3&second=5", "max-age=60"),
    ] {
        for accept in ["*/*", "application/scitt-receipt+cose", "text/x.tlog.proof"] {
            let path = format!("/v1/proof/{query}");
            let answer = site.send(Method::GET, &path, &[("accept", accept)], "").await;
            if query.starts_with("consistency") && accept == "text/x.tlog.proof" {
                assert_eq!(answer.status, 406, "C2SP has no such form of a consistency proof");
                continue;
            }
            assert_eq!(answer.status, 200, "{query} {accept}");
            assert_eq!(answer.header("vary"), Some("accept"), "{query} {accept}");
            assert_eq!(answer.header("cache-control"), Some(&*format!("public, {age}")), "{query} {accept}");
        }
    }
    for path in ["/v1/policy/0", "/v1/policy/1"] {
        let answer = site.get(path).await;
        assert!(answer.status == 404 || answer.header("vary") == Some("accept"), "{path}");
    }
}

#[tokio::test]
async fn a_checkpoint_is_still_known_by_a_tag_that_a_proxy_made_weak() {
    let (site, _) = log_of(2).await;
    for path in ["/checkpoint", "/v1/checkpoints/2", "/tile/0/000.p/2"] {
        let tag = site.get(path).await.header("etag").unwrap().to_owned();
        for (known, status) in [
            (tag.clone(), 304),
            (format!("W/{tag}"), 304),
            (format!("\"x\", W/{tag}"), 304),
            ("*".to_owned(), 304),
            (format!("W/W/{tag}"), 200),
            ("W/\"x\"".to_owned(), 200),
        ] {
            let answer = site.send(Method::GET, path, &[("if-none-match", &known)], "").await;
            assert_eq!(answer.status, status, "{path} {known}");
        }
    }
}

#[tokio::test]
async fn checkpoints_are_listed_from_the_newest_on_with_their_times() {
    let (site, _) = log_of(5).await;
    // A receipt may leave a moment before the signature of its checkpoint is stored.
    let newest = async || {
        site.get("/v1/checkpoints?order=newest&limit=1").await.json()["checkpoints"][0]["size"].clone()
    };
    while newest().await != 5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut path = "/v1/checkpoints?order=newest&limit=2".to_owned();
    let mut sizes = Vec::new();
    loop {
        let answer = site.get(&path).await;
        for checkpoint in answer.json()["checkpoints"].as_array().unwrap() {
            sizes.push(checkpoint["size"].as_u64().unwrap());
            assert!(checkpoint["at"].is_string(), "{checkpoint}");
        }
        let Some(link) = answer.header("link") else { break };
        path = link.split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    }
    assert_eq!(sizes, [5, 4, 3, 2, 1]);
    let before = site.get("/v1/checkpoints?order=newest&before=3").await.json();
    assert_eq!(before["checkpoints"][0]["size"], 2);
    for (query, count) in [("before=0", 0), ("before=1", 0), ("before=99&limit=1", 1)] {
        let found = site.get(&format!("/v1/checkpoints?order=newest&{query}")).await.json();
        assert_eq!(found["checkpoints"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn a_size_has_one_name_and_one_without_signature_is_told_why() {
    let (site, _) = log_of(2).await;
    for size in ["+2", "%2B2", "02", "-2", "2.0", "x", "18446744073709551616"] {
        let answer = site.get(&format!("/v1/checkpoints/{size}")).await;
        assert_eq!((answer.status, answer.problem().get_code()), (400, Some("size")), "{size}");
    }
    for (size, why) in [("0", "never signed"), ("3", "is signed yet; the newest has size 2")] {
        let answer = site.get(&format!("/v1/checkpoints/{size}")).await;
        assert_eq!((answer.status, answer.problem().get_code()), (404, Some("size-unsigned")), "{size}");
        assert!(answer.problem().detail.clone().unwrap().contains(why), "{size}");
    }
    for query in ["checkpoints?after=", "entries?after=", "entries/stream?after=", "entries/stream?from="] {
        for number in ["%2B1", "01", ""] {
            assert_eq!(site.get(&format!("/v1/{query}{number}")).await.status, 400, "{query}{number}");
        }
    }
    assert_eq!(site.get("/v1/checkpoints?after=1").await.status, 200);
    assert_eq!(site.get("/v1/entries?after=0").await.status, 200);
}

#[tokio::test]
async fn proofs_that_cannot_be_are_refused_with_the_reason() {
    let (site, digests) = log_of(4).await;
    let id = digests[1];
    for (query, status) in [
        ("inclusion".to_owned(), 400),
        ("inclusion?index=4".to_owned(), 400),
        ("inclusion?index=0&size=5".to_owned(), 400),
        ("inclusion?index=2&size=2".to_owned(), 400),
        ("inclusion?index=-1".to_owned(), 400),
        (format!("inclusion?index=1&entry_id={id}"), 400),
        ("inclusion?entry_id=xyz".to_owned(), 400),
        (format!("inclusion?entry_id={}", "0".repeat(64)), 404),
        ("inclusion?index=0&colour=red".to_owned(), 400),
        ("consistency".to_owned(), 400),
        ("consistency?first=0&second=5".to_owned(), 400),
        ("consistency?first=5".to_owned(), 400),
        ("consistency?first=3&second=2".to_owned(), 400),
        ("consistency?first=1&second=5".to_owned(), 400),
    ] {
        let answer = site.get(&format!("/v1/proof/{query}")).await;
        assert_eq!(answer.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_number_in_a_query_has_one_form_and_a_refusal_names_its_parameter() {
    let (site, _) = log_of(4).await;
    for (query, code, parameter) in [
        ("proof/consistency?first=01", "query", "first: "),
        ("proof/consistency?first=1&second=%2B2", "query", "second: "),
        ("proof/inclusion?index=00", "query", "index: "),
        ("proof/inclusion?index=1&size=02", "query", "size: "),
        ("checkpoints?size=0", "page", "`size`"),
        ("checkpoints?limit=025", "page", "limit: "),
        ("entries?limit=03", "page", "limit: "),
        ("entries?from_time=01", "search", "from_time "),
        ("entries?to_time=%2B1", "search", "to_time "),
        ("evidence?from=01", "page", "from: "),
        ("erasures?after=01", "page", "after: "),
        ("equivocations?limit=%2B1", "page", "limit: "),
        ("issuers/someone/chain?sub=one&after=01", "page", "after: "),
        ("issuers/someone/chain?after=1", "page", "`sub`"),
    ] {
        let answer = site.get(&format!("/v1/{query}")).await;
        assert_eq!(answer.refusal(), refusal(400, "Malformed request", code), "{query}");
        let detail = answer.problem().detail.unwrap();
        assert!(detail.contains(parameter), "{query}: {detail}");
    }
}

#[tokio::test]
async fn a_monitor_goes_on_from_the_tree_it_knows_with_one_request() {
    let (site, digests) = log_of(7).await;
    let origin = testkit::ORIGIN.parse().unwrap();
    for first in 1..=7 {
        let answer = site.get(&format!("/v1/proof/consistency?first={first}")).await;
        assert_eq!(answer.status, 200, "{first}");
        assert!(
            answer.header("cache-control").unwrap().contains("max-age=1"),
            "the newest tree is not for long"
        );
        let view = answer.json();
        let note = view["checkpoint"].as_str().unwrap();
        let checkpoint = Checkpoint::open(note.as_bytes(), &origin, &[key(&site)]).unwrap();
        assert_eq!(view["second"], checkpoint.size().get(), "of exactly this size");
        let older = root_of(&digests[..first as usize]);
        let newer = checkpoint.root();
        verify::consistency(TreeSize::new(first), checkpoint.size(), older, newer, &path(&view)).unwrap();
        assert_eq!(newer, root_of(&digests));
    }
}

#[tokio::test]
async fn nothing_is_to_prove_between_a_tree_and_itself_or_the_empty_one() {
    let (site, digests) = log_of(4).await;
    for (query, second) in [("first=0", 4), ("first=0&second=2", 2), ("first=4", 4), ("first=3&second=3", 3)]
    {
        let answer = site.get(&format!("/v1/proof/consistency?{query}")).await;
        let view = answer.json();
        assert_eq!((&view["second"], &view["path"]), (&json!(second), &json!([])), "{query}");
        assert_eq!(view["checkpoint"].is_string(), !query.contains("second"), "{query}");
        let receipt = [("accept", "application/scitt-receipt+cose")];
        let answer = site.send(Method::GET, &format!("/v1/proof/consistency?{query}"), &receipt, "").await;
        assert_eq!((answer.status, answer.problem().get_code()), (400, Some("proof-none")), "{query}");
    }
    let view = site.get("/v1/proof/consistency?first=0").await.json();
    let note = view["checkpoint"].as_str().unwrap();
    let checkpoint =
        Checkpoint::open(note.as_bytes(), &testkit::ORIGIN.parse().unwrap(), &[key(&site)]).unwrap();
    assert_eq!(checkpoint.root(), root_of(&digests));
}
