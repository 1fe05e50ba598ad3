//! Starting, restarting, reloading, stopping, and what a service does when its parts fail.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::common::forms::{closed, cose, mixed_type};
use crate::common::{Place, Site, backup_with_signatures, client, erasure, refusal, statement};
use data_encoding::BASE64URL_NOPAD;
use reqwest::Method;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use scitt::{Algorithm, CoseKey, KeySet, SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::json;
use serving::tls::TlsFiles;
use store::{FailingStore, Fault, Lifecycle, Memory, StoreMethod};
use transparency::{Service, StartError};

fn revision(n: u64) -> String {
    testkit::policy_toml().replace("revision = 0", &format!("revision = {n}"))
}

fn without_text(n: u64) -> String {
    let toml = revision(n);
    toml[..toml.find("[[type]]\ncontent_type = \"application/json\"").unwrap()].to_owned()
}

async fn refused(place: &Place, change: impl FnOnce(&mut transparency::Config)) -> StartError {
    let mut config = place.config();
    change(&mut config);
    match Service::start(config).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

/// Waits until the log has the statement's bytes no more.
async fn until_erased(site: &Site, statement: &SignedStatement) {
    let path = format!("/v1/entries/{}/statement", statement.digest());
    let erased = async {
        while site.get(&path).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), erased).await.expect("the statement is still there");
}

#[tokio::test]
async fn a_restart_serves_every_receipt_and_goes_on_from_there() {
    let place = Place::new();
    let site = place.start().await;
    for n in 1..4 {
        site.registered(&statement(n)).await;
    }
    site.service.stop().await;
    let site = place.start().await;
    for n in 1..4 {
        let one = statement(n);
        // ES256 signatures differ from run to run: what counts is what the log holds.
        let listed = site.get("/v1/entries").await.json();
        let id = listed["entries"][n as usize]["entry_id"].as_str().unwrap().to_owned();
        let stored = site.get(&format!("/v1/entries/{id}/statement")).await;
        let stored = SignedStatement::parse(stored.body).unwrap();
        assert_eq!(stored.payload(), one.payload());
        let receipt = site.get(&format!("/entries/{id}")).await;
        site.verified(&stored, &receipt.body).await;
    }
    let receipt = site.registered(&statement(9)).await;
    assert_eq!(receipt.inclusion_proofs()[0].leaf_index.get(), 4);
}

#[tokio::test]
async fn an_erasure_that_a_stop_interrupted_is_carried_out_though_the_log_is_frozen_since() {
    let (place, memory) = (Place::new(), Memory::new());
    let store = FailingStore::new(memory.clone());
    store.fail_every(StoreMethod::Erase);
    let site = place.start_on(store, |_| {}).await;
    let one = statement(1);
    site.registered(&one).await;
    site.registered(&erasure(&[one.digest()])).await;
    site.service.stop().await;
    memory.freeze("operator", 7).await.unwrap();
    let site = place.start_on(memory, |_| {}).await;
    until_erased(&site, &one).await;
}

/// A statement of this content type.
fn typed(content_type: &str) -> SignedStatement {
    let builder = StatementBuilder::new("{}").content_type(content_type).kid(testkit::KID.as_bytes());
    builder.iss(testkit::ISSUER).sub("thing").sign(&testkit::es256()).unwrap()
}

#[tokio::test]
async fn retention_looks_at_all_content_types_however_many_there_are() {
    let place = Place::new();
    let kept = "max_size = 4096";
    place.write_policy(&testkit::policy_toml().replace(kept, &format!("{kept}\nretention = \"1 second\"")));
    let second = Duration::from_secs(1);
    let site = place.start_on(Memory::new(), |config| config.limits.retention_every = second).await;
    // Another spelling is another value of the index, and these come before `text/plain`.
    let spellings: Vec<_> =
        (0..1001).map(|n| cose(typed(&format!("application/json; n={n}")).bytes())).collect();
    for parts in spellings.chunks(256) {
        let answer = site.post_multipart("/v1/entries/batch", &mixed_type(), closed(parts)).await.json();
        assert!(
            answer["results"].as_array().unwrap().iter().all(|result| result["status"] == 201),
            "{answer}"
        );
    }
    let late = typed("text/plain");
    site.registered(&late).await;
    until_erased(&site, &late).await;
}

#[tokio::test]
async fn another_key_than_the_logs_own_is_refused_at_start() {
    for (name, algorithm) in [("receipt.pem", Algorithm::Es256), ("checkpoint.pem", Algorithm::EdDsa)] {
        let place = Place::new();
        place.start().await.service.stop().await;
        place.write_key(name, &SigningKey::generate(algorithm).unwrap());
        let error = refused(&place, |_| {}).await;
        assert!(matches!(error, StartError::Keys(_)), "{error}");
        assert!(error.to_string().contains("this log signs with"), "{error}");
    }
}

/// Announces a receipt key whose private part no process has: it is published, and never used.
async fn announce_receipt_key(site: &Site) {
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let kid = key.public_key().thumbprint().to_vec();
    let public = CoseKey {
        kid: Some(kid.clone()),
        algorithm: Some(Algorithm::Es256),
        ..CoseKey::bare(key.public_key().clone())
    };
    let set = KeySet::parse(&site.get("/.well-known/scitt-keys").await.body).unwrap();
    let replaces = set.keys()[0].kid.clone().unwrap();
    let announced = json!({ "origin": testkit::ORIGIN, "key": {
        "kid": BASE64URL_NOPAD.encode(&kid),
        "public": BASE64URL_NOPAD.encode(&public.encode()),
        "replaces": BASE64URL_NOPAD.encode(&replaces),
        "at": 1,
    } });
    let answer = site.command(Method::POST, "/keys/announce", announced.to_string()).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

#[tokio::test]
async fn a_cache_serves_the_key_set_only_after_asking_whether_a_key_was_announced() {
    let site = Place::new().start().await;
    let path = "/.well-known/scitt-keys";
    let set = site.get(path).await;
    assert_eq!(set.header("cache-control"), Some("no-cache"));
    let tag = set.header("etag").unwrap();
    let again = async || site.send(Method::GET, path, &[("if-none-match", tag)], "").await;
    let known = again().await;
    assert_eq!((known.status, known.body.len(), known.header("vary")), (304, 0, Some("accept")));
    let json = site.send(Method::GET, path, &[("accept", "application/json")], "").await;
    assert_ne!(json.header("etag"), Some(tag));
    announce_receipt_key(&site).await;
    let newer = async {
        loop {
            let answer = again().await;
            if answer.status != 304 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let newer = tokio::time::timeout(Duration::from_secs(30), newer).await.expect("it is never published");
    assert_eq!((newer.status, KeySet::parse(&newer.body).unwrap().keys().len()), (200, 2));
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    std::fs::set_permissions(place.path("receipt.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(&place, |_| {}).await;
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn the_next_revision_is_published_and_any_other_policy_is_refused_naming_both() {
    let place = Place::new();
    place.start().await.service.stop().await;
    place.write_policy(&revision(1));
    let site = place.start().await;
    let policy = site.get("/v1/policy").await.json();
    assert_eq!((policy["revision"].as_u64(), policy["index"].as_u64()), (Some(1), Some(1)));
    site.service.stop().await;
    for wrong in [revision(0), revision(3)] {
        place.write_policy(&wrong);
        let error = refused(&place, |_| {}).await.to_string();
        assert!(error.contains("revision 1") && error.contains("the configured one"), "{error}");
    }
    place.write_policy(&revision(1));
    place.start().await.service.stop().await;
}

/// A time of the database's server because of which this process may not lead.
fn far_away() -> Option<Duration> {
    Some(Duration::from_secs(4_000_000_000))
}

/// Waits until the policy of this revision is in force.
async fn until_in_force(site: &Site, revision: u64) {
    let published = async {
        loop {
            let policy = site.service.policy();
            if policy.is_some_and(|policy| policy.in_force.policy().contents().revision == revision) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), published).await.expect("it is never in force");
}

#[tokio::test]
async fn a_policy_that_cannot_be_published_at_the_start_is_published_once_the_log_registers() {
    let (place, memory) = (Place::new(), Memory::new());
    memory.set_clock(far_away());
    let site = place.start_on(memory.clone(), |_| {}).await;
    assert!(site.service.policy().is_none());
    memory.set_clock(None);
    until_in_force(&site, 0).await;
    site.registered(&statement(1)).await;
}

#[tokio::test]
async fn a_reload_while_nothing_is_registered_says_so_and_its_policy_is_published_later() {
    let (place, memory) = (Place::new(), Memory::new());
    place.start_on(memory.clone(), |_| {}).await.service.stop().await;
    memory.set_clock(far_away());
    let site = place.start_on(memory.clone(), |_| {}).await;
    site.service.reload(&place.config()).await.unwrap();
    place.write_policy(&revision(1));
    let failures = site.service.reload(&place.config()).await.unwrap_err();
    assert!(failures[0].to_string().contains("it is registered once that ends"), "{failures:?}");
    assert_eq!(site.service.policy().unwrap().in_force.policy().contents().revision, 0);
    memory.set_clock(None);
    until_in_force(&site, 1).await;
}

#[tokio::test]
async fn a_policy_for_another_log_is_refused() {
    let place = Place::new();
    let error = refused(&place, |config| config.origin = "other.example".into()).await;
    assert!(error.to_string().contains("the policy is for"), "{error}");
}

#[tokio::test]
async fn a_registered_statement_keeps_its_receipt_when_the_policy_no_longer_admits_it() {
    let place = Place::new();
    let site = place.start().await;
    let one = statement(1);
    site.registered(&one).await;
    place.write_policy(&without_text(1));
    site.service.reload(&place.config()).await.unwrap();
    let other = site.register(&statement(2)).await;
    assert_eq!(other.problem().get_rule(), Some("content-type-not-admitted"));
    let again = site.registered(&one).await;
    assert_eq!(again.inclusion_proofs()[0].leaf_index.get(), 1);
}

#[tokio::test]
async fn a_policy_posted_by_its_operator_is_in_force_from_then_on() {
    let place = Place::new();
    let site = place.start().await;
    let old = testkit::policy();
    let new = registration::Policy::from_toml(&without_text(1)).unwrap();
    let signed = registration::policy_statement::sign(&new, &old, &testkit::operator()).unwrap();
    site.registered(&signed).await;
    assert_eq!(site.get("/v1/policy").await.json()["revision"], 1);
    assert_eq!(site.register(&statement(1)).await.problem().get_rule(), Some("content-type-not-admitted"));
}

#[tokio::test]
async fn a_reload_that_cannot_be_taken_up_leaves_the_rest_in_force() {
    let place = Place::new();
    let site = place.start().await;
    place.write_policy(&revision(7));
    let mut config = place.config();
    config.limits.statement_bytes = 10;
    let failures = site.service.reload(&config).await.unwrap_err();
    assert!(failures[0].to_string().contains("revision"), "{failures:?}");
    assert_eq!(site.register(&statement(1)).await.status, 413, "the limit is taken up");
    assert_eq!(site.get("/v1/policy").await.json()["revision"], 0);
}

#[tokio::test]
async fn every_mistake_is_named_at_once_and_plaintext_stays_on_loopback() {
    let place = Place::new();
    let error = refused(&place, |config| {
        config.listen = "0.0.0.0:0".parse().unwrap();
        config.origin = "https://log.example".into();
        config.limits.statement_bytes = 9 << 20;
    })
    .await;
    let StartError::Config(mistakes) = error else { panic!("{error}") };
    let settings: Vec<_> = mistakes.iter().map(|mistake| mistake.setting).collect();
    assert_eq!(settings, ["origin", "listen", "max_statement_bytes"]);
    let site = place
        .start_with(|config| {
            config.listen = "0.0.0.0:0".parse().unwrap();
            config.plaintext = true;
        })
        .await;
    site.service.stop().await;
}

#[tokio::test]
async fn a_full_queue_answers_503_with_retry_after_and_keeps_nothing() {
    let (place, store) = (Place::new(), FailingStore::new(Memory::new()));
    let site = place.start_on(store.clone(), |config| config.limits.queue_entries = 1).await;
    store.hold_commits();
    let first = site.service.sequencer().clone();
    let (one, two) = (statement(1), statement(2));
    let waiting = {
        let (url, body, client) = (format!("{}/entries", site.url), one.bytes().clone(), client());
        tokio::spawn(async move { client.post(url).body(body).send().await.unwrap().status().as_u16() })
    };
    while first.queue().0 == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = site.register(&two).await;
    assert_eq!(refused.refusal(), refusal(503, "Service Unavailable", "queue-full"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(site.get(&site.location(&two)).await.status, 404);
    store.release_commits();
    assert!(matches!(waiting.await.unwrap(), 201 | 202));
    site.registered(&two).await;
}

#[tokio::test]
async fn a_database_that_went_away_is_503_for_writes_and_comes_back() {
    let (place, store) = (Place::new(), FailingStore::new(Memory::new()));
    let site = place.start_on(store.clone(), |_| {}).await;
    site.registered(&statement(1)).await;
    store.break_down(Fault::Refused);
    let refused = site.register(&statement(2)).await;
    assert_eq!(refused.refusal(), refusal(503, "Service Unavailable", "database-unavailable"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(site.get("/.well-known/scitt-keys").await.status, 200);
    let ready = client().get(format!("{}/readyz", site.admin)).send().await.unwrap();
    assert_eq!(ready.status(), 503);
    store.mend();
    for attempt in 0.. {
        let answer = site.register(&statement(3)).await;
        if answer.status == 201 {
            break;
        }
        assert!(attempt < 100, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn after_an_old_backup_nothing_is_signed_and_reads_go_on() {
    let (place, store) = (Place::new(), Memory::new());
    let site = place.start_on(store.clone(), |_| {}).await;
    let one = statement(1);
    site.registered(&one).await;
    let backup = backup_with_signatures(&store).await;
    site.registered(&statement(2)).await;
    site.service.stop().await;
    store.restore(&backup);
    let site = place.start_on(store, |_| {}).await;
    let refused = site.register(&statement(3)).await;
    assert_eq!(refused.refusal(), refusal(503, "Service Unavailable", "log-halted"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(site.get(&site.location(&one)).await.status, 200);
    assert_eq!(site.register(&one).await.status, 201, "what is registered keeps its receipt");
    let ready = client().get(format!("{}/readyz", site.admin)).send().await.unwrap();
    assert_eq!(ready.status(), 503);
    assert!(ready.text().await.unwrap().contains("the database is at 2, this log has signed 3"));
}

#[tokio::test]
async fn a_second_process_on_one_database_accepts_through_the_inbox_and_takes_over() {
    let (place, store) = (Place::new(), Memory::new());
    let leader = place.start_on(store.clone(), |_| {}).await;
    let follower = place.start_on(store.clone(), |_| {}).await;
    let one = statement(1);
    let answer = follower.register(&one).await;
    assert!(matches!(answer.status, 201 | 202), "{answer:?}");
    assert_eq!(answer.header("location"), Some(follower.location(&one).as_str()));
    resolved(&follower, &one).await;
    leader.service.stop().await;
    for n in 2..5 {
        let next = statement(n);
        let answer = follower.register(&next).await;
        assert!(matches!(answer.status, 201 | 202), "{answer:?}");
        resolved(&follower, &next).await;
    }
}

async fn resolved(site: &Site, statement: &SignedStatement) {
    for _ in 0..500 {
        let answer = site.get(&site.location(statement)).await;
        if answer.status == 200 {
            site.verified(statement, &answer.body).await;
            return;
        }
        assert_eq!(answer.status, 204, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not resolved");
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight() {
    let place = Place::new();
    let site = place.start().await;
    let url = format!("{}/entries", site.url);
    let clients = (0..50).map(|n| {
        let (url, body, client) = (url.clone(), statement(n).bytes().clone(), client());
        tokio::spawn(async move {
            client.post(url).body(body).send().await.map(|answer| answer.status().as_u16())
        })
    });
    let clients: Vec<_> = clients.collect();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let started = std::time::Instant::now();
    site.service.stop().await;
    assert!(started.elapsed() < Duration::from_secs(10));
    let mut answered = 0;
    for client in clients {
        // Refused connections are no answer; an answer is a receipt or an honest refusal.
        if let Ok(status) = client.await.unwrap() {
            assert!(matches!(status, 201 | 202 | 503), "{status}");
            answered += usize::from(status == 201);
        }
    }
    let site = place.start().await;
    let listed = site.get("/v1/entries?limit=1000").await.json()["entries"].as_array().unwrap().len();
    assert!(listed > answered, "{answered} receipts, {listed} entries with the policy");
}

#[tokio::test]
async fn health_and_metrics_have_a_listener_of_their_own() {
    let site = Place::new().start().await;
    site.registered(&statement(1)).await;
    site.register(&statement(1)).await;
    site.post(b"junk").await;
    let fetch = async |path: &str| {
        let answer = client().get(format!("{}{path}", site.admin)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(fetch("/livez").await, (200, "alive\n".into()));
    assert_eq!(fetch("/readyz").await, (200, "ready\n".into()));
    let (_, metrics) = fetch("/metrics").await;
    for line in [
        "tabellion_register_total{result=\"malformed\"} 1",
        "tabellion_register_total{result=\"policy\"} 0",
        "tabellion_register_duration_seconds_count{stage=\"verify\"}",
        "tabellion_sequence_batch_entries_count",
        "tabellion_receipt_issued_total{alg=\"ES256\"}",
        "tabellion_queue_entries 0",
        "http_server_request_duration_seconds_count{http_request_method=\"POST\",http_response_status_code=\"201\",http_route=\"/entries\"}",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    for secret in [testkit::ISSUER, "thing-1"] {
        assert!(!metrics.contains(secret), "never issuers or subjects as labels");
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(site.get(path).await.status, 404, "not on the public listener");
    }
}

#[tokio::test]
async fn tls_speaks_http_1_and_2_and_takes_a_new_certificate_on_reload() {
    let place = Place::new();
    let first = certificate(&place);
    let tls =
        |place: &Place| Some(TlsFiles { certificate: place.path("tls.pem"), key: place.path("tls.key") });
    let site = place.start_with(|config| config.tls = tls(&place)).await;
    let url = format!("https://localhost:{}", site.service.addresses().public.port());
    let trusting = |certificate: &str| {
        let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
        reqwest::Client::builder().tls_certs_only([root]).build().unwrap()
    };
    let keys = format!("{url}/.well-known/scitt-keys");
    let answer = trusting(&first).get(&keys).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    let second = certificate(&place);
    assert!(trusting(&second).get(&keys).send().await.is_err(), "not before the reload");
    let mut config = place.config();
    config.tls = tls(&place);
    site.service.reload(&config).await.unwrap();
    assert_eq!(trusting(&second).get(&keys).send().await.unwrap().status(), 200);
    std::fs::write(place.path("tls.pem"), "broken").unwrap();
    assert!(site.service.reload(&config).await.is_err());
    assert_eq!(trusting(&second).get(&keys).send().await.unwrap().status(), 200, "the last good one stays");
    let plain = client().request(Method::GET, keys.replace("https", "http")).send().await;
    assert!(plain.is_err() || plain.unwrap().status().is_client_error());
}

#[tokio::test]
async fn tls_speaks_http_1_0_with_a_client_that_offers_nothing_else() {
    let place = Place::new();
    let certificate = certificate(&place);
    let files = TlsFiles { certificate: place.path("tls.pem"), key: place.path("tls.key") };
    let site = place.start_with(|config| config.tls = Some(files)).await;
    let port = site.service.addresses().public.port();
    let heard = tokio::task::spawn_blocking(move || over_http_1_0(&certificate, port)).await.unwrap();
    assert!(heard.starts_with("HTTP/1.0 200"), "{heard}");
}

/// Fetches the keys over HTTP/1.0, the only protocol that this client offers (ALPN).
fn over_http_1_0(certificate: &str, port: u16) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.0".to_vec()];
    let name = "localhost".try_into().unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    stream.write_all(b"GET /.well-known/scitt-keys HTTP/1.0\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    // The service may close the connection without a closure alert.
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

fn certificate(place: &Place) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(place.path("tls.pem"), made.cert.pem()).unwrap();
    place.write_private("tls.key", &made.signing_key.serialize_pem());
    made.cert.pem()
}
