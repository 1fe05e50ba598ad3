//! A shared HTTP cache (RFC 9111) before the log: what never changes is served from it, and nothing old is.

use black_box::{Connection, HttpCache, Log, Service, is_cached};

/// Entries besides the policy: more than one full tile.
const ENTRIES: usize = 260;

/// The size of the newest published tree.
fn size(service: &Service) -> usize {
    let checkpoint = service.connection().get("/checkpoint");
    let text = String::from_utf8(checkpoint.body).unwrap();
    text.lines().nth(1).unwrap().parse().unwrap()
}

/// Fetches through the cache, and checks that the service itself serves the same bytes. Returns whether the cache had it.
fn fetch(cache: &mut Connection, service: &Service, path: &str) -> bool {
    let (answer, own) = (cache.get(path), service.connection().get(path));
    assert_eq!((answer.status, own.status), (200, 200), "{path}");
    assert_eq!(answer.body, own.body, "{path}");
    is_cached(&answer)
}

#[test]
fn a_tile_is_served_from_the_cache_for_ever_and_a_missing_one_is_not_remembered() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, ENTRIES);
    let cache = HttpCache::before(&service);
    let mut reader = cache.connection();
    let partial = size(&service) - 256;
    let tiles = [
        "/tile/0/000".to_owned(),
        format!("/tile/0/001.p/{partial}"),
        "/tile/1/000.p/1".to_owned(),
        "/tile/entries/000".to_owned(),
        format!("/tile/entries/001.p/{partial}"),
    ];
    for path in &tiles {
        assert!(!fetch(&mut reader, &service, path), "{path} is new to the cache");
        assert!(fetch(&mut reader, &service, path), "{path} is asked for again");
    }
    let next = format!("/tile/0/001.p/{}", partial + 1);
    assert_eq!(reader.get(&next).status, 404, "no published tree has it yet");
    log.register(&service, 1);
    assert!(!fetch(&mut reader, &service, &next));
    for path in &tiles {
        assert!(fetch(&mut reader, &service, path), "{path} is the same in the larger tree");
    }
}

#[test]
fn a_receipt_is_fresh_through_a_cache_and_not_sent_again_to_a_client_that_has_it() {
    let log = Log::sqlite();
    let service = log.serve();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let cache = HttpCache::before(&service);
    let mut reader = cache.connection();
    let path = format!("/entries/{}", statement.digest());
    for _ in 0..2 {
        assert!(!fetch(&mut reader, &service, &path), "a cache must ask the log for a receipt");
    }
    let receipt = reader.get(&path);
    let tag = receipt.header("etag").unwrap().to_owned();
    let again = |from: &mut Connection| from.send("GET", &path, &[("If-None-Match", &tag)], b"");
    // nginx passes no condition on to the log for what it does not keep.
    let known = again(&mut service.connection());
    assert_eq!((known.status, known.body.len()), (304, 0));
    log.register(&service, 1);
    for mut from in [reader, service.connection()] {
        let newer = again(&mut from);
        assert_eq!(newer.status, 200, "there is a receipt under a larger tree");
        assert_ne!(newer.body, receipt.body);
    }
}

#[test]
fn what_a_token_may_read_is_not_served_to_others_from_a_cache() {
    let log = Log::sqlite();
    log.configure("anonymous_role = \"public\"");
    let service = log.serve();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let cache = HttpCache::before(&service);
    let mut reader = cache.connection();
    let path = format!("/v1/entries/{}/statement", statement.digest());
    let auditor = reader.get_as_auditor(&path);
    assert_eq!(auditor.status, 200);
    let other = reader.get(&path);
    assert!(matches!(other.status, 401 | 403), "{}", other.status);
}
