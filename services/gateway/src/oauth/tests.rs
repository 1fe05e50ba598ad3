#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents};
use scitt::{Algorithm, Signer, SigningKey};
use serde_json::{Value, json};

use super::{AcceptedToken, Challenge, FetchedKeys, TokenCheck};
use crate::config::{KeySource, OAuth, OAuthMode};

const NOW: i64 = 1_800_000_000;
const GATEWAY: &str = "https://gw.example/mcp";
const UPSTREAM: &str = "https://up.example/mcp";
const ISSUER: &str = "https://as.example";
/// A key pair for these tests only.
const RSA: &[u8] = include_bytes!("testdata/rsa-2048.pk8");

/// A test authorization server.
struct Issuer {
    es256: SigningKey,
    ed25519: SigningKey,
    rsa: RsaKeyPair,
}

impl Issuer {
    fn new() -> Self {
        Self {
            es256: SigningKey::generate(Algorithm::Es256).unwrap(),
            ed25519: SigningKey::generate(Algorithm::EdDsa).unwrap(),
            rsa: RsaKeyPair::from_pkcs8(RSA).unwrap(),
        }
    }

    fn jwks(&self) -> Value {
        let named = |key: &SigningKey, kid: &str, alg: &str| {
            let mut jwk = key.public_key().to_jwk().to_value();
            jwk["kid"] = kid.into();
            jwk["alg"] = alg.into();
            jwk
        };
        let public = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public_key());
        let number = |bytes: &[u8]| Value::from(BASE64URL_NOPAD.encode(bytes));
        json!({ "keys": [
            named(&self.es256, "es", "ES256"),
            named(&self.ed25519, "ed", "EdDSA"),
            { "kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig",
              "n": number(&public.n),
              "e": number(&public.e) },
            { "kty": "RSA", "kid": "enc", "use": "enc", "n": "AQAB", "e": "AQAB" },
            { "kty": "oct-unknown", "kid": "odd" },
        ] })
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let parts = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.to_string().as_bytes()));
        let input = parts.join(".");
        let signature = match header["alg"].as_str() {
            Some("RS256") => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let random = SystemRandom::new();
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, input.as_bytes(), &mut signature).unwrap();
                signature
            }
            Some("EdDSA") => self.ed25519.sign(input.as_bytes()).unwrap(),
            Some("ES256") => self.es256.sign(input.as_bytes()).unwrap(),
            _ => Vec::new(),
        };
        format!("{input}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    fn token(&self, claims: &Value) -> String {
        self.sign(&json!({ "alg": "ES256", "kid": "es", "typ": "at+jwt" }), claims)
    }
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "alice", "aud": [GATEWAY], "exp": NOW + 600, "iat": NOW, "client_id": "cli",
            "scope": "mcp:tools offline" })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn settings(keys: KeySource) -> OAuth {
    OAuth {
        mode: OAuthMode::Gateway,
        audience: GATEWAY.into(),
        issuer: ISSUER.into(),
        keys,
        algorithms: crate::config::TOKEN_ALGORITHMS.map(str::to_owned).to_vec(),
        scopes: vec!["mcp:tools".into()],
        authorization_servers: vec![ISSUER.into()],
        token_type: None,
    }
}

fn mode_b(keys: KeySource) -> OAuth {
    let metadata = "https://up.example/.well-known/oauth-protected-resource/mcp".parse().unwrap();
    OAuth { mode: OAuthMode::Upstream { metadata }, audience: UPSTREAM.into(), ..settings(keys) }
}

/// A test route, with the issuer's keys in a file.
struct Door {
    issuer: Issuer,
    keys: PathBuf,
    _folder: tempfile::TempDir,
}

impl Door {
    fn new() -> Self {
        let (issuer, folder) = (Issuer::new(), tempfile::tempdir().unwrap());
        let keys = folder.path().join("jwks.json");
        std::fs::write(&keys, issuer.jwks().to_string()).unwrap();
        Self { issuer, keys, _folder: folder }
    }

    fn source(&self) -> KeySource {
        KeySource::File(self.keys.clone())
    }

    async fn knock(&self, settings: OAuth, token: &str) -> Result<AcceptedToken, Challenge> {
        admit(&check(&settings), token).await
    }

    /// The reason why mode A refuses these claims.
    async fn refusal(&self, claims: &Value) -> String {
        let refused = self.knock(settings(self.source()), &self.issuer.token(claims)).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{claims}");
        refused.why
    }
}

fn check(settings: &OAuth) -> TokenCheck {
    TokenCheck::new(settings, &"https://gw.example".parse().unwrap(), "/mcp", &FetchedKeys::default())
        .unwrap()
}

async fn admit(check: &TokenCheck, token: &str) -> Result<AcceptedToken, Challenge> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    check.admit(&headers, Timestamp::from_second(NOW).unwrap()).await
}

#[tokio::test]
async fn a_good_token_says_whose_it_is_and_ends_here_in_mode_a() {
    let door = Door::new();
    for (alg, kid) in [("ES256", "es"), ("EdDSA", "ed"), ("RS256", "rsa")] {
        let token = door.issuer.sign(&json!({ "alg": alg, "kid": kid }), &claims());
        let admitted = door.knock(settings(door.source()), &token).await.unwrap();
        assert_eq!((admitted.subject.iss.as_str(), admitted.subject.sub.as_str()), (ISSUER, "alice"));
        assert_eq!(admitted.subject.client_id.as_deref(), Some("cli"));
        assert_eq!(admitted.passes, None, "{alg}");
    }
}

#[tokio::test]
async fn without_a_token_the_challenge_names_metadata_and_scope() {
    let door = Door::new();
    let response =
        check(&settings(door.source())).admit(&HeaderMap::new(), Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        response.www_authenticate.unwrap(),
        "Bearer scope=\"mcp:tools\", \
         resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\""
    );
}

#[tokio::test]
async fn r_27_mode_a_refuses_a_token_for_the_server_and_mode_b_one_for_the_gateway() {
    let door = Door::new();
    let (ours, theirs) = (door.issuer.token(&claims()), door.issuer.token(&with("aud", json!(UPSTREAM))));
    assert!(door.knock(settings(door.source()), &theirs).await.is_err());
    assert!(door.knock(mode_b(door.source()), &ours).await.is_err());
    let admitted = door.knock(mode_b(door.source()), &theirs).await.unwrap();
    assert_eq!(admitted.passes.unwrap().to_str().unwrap(), format!("Bearer {theirs}"));
}

#[tokio::test]
async fn r_27_an_audience_is_compared_whole() {
    let door = Door::new();
    for aud in [
        json!("https://gw.example/mcp/x"),
        json!("https://gw.example"),
        json!(["https://gw.example/mcp.evil.example", "x"]),
        json!("https://gw.example/mcp https://other.example"),
        json!("HTTPS://GW.EXAMPLE/mcp"),
        json!([]),
        json!({ "aud": GATEWAY }),
        json!(["x", 1]),
        Value::Null,
    ] {
        assert!(door.refusal(&with("aud", aud.clone())).await.contains("aud"), "{aud}");
    }
    assert!(door.refusal(&without("aud")).await.contains("aud"));
}

#[tokio::test]
async fn a_token_of_another_issuer_or_time_or_of_nobody_is_refused() {
    let door = Door::new();
    for claims in [
        with("iss", json!("https://as.example/")),
        with("iss", json!("https://as.example.evil.example")),
        without("iss"),
        with("exp", json!(NOW - 31)),
        with("exp", json!("1900000000")),
        without("exp"),
        with("nbf", json!(NOW + 31)),
        with("iat", json!(NOW + 3600)),
        without("sub"),
        with("sub", json!("")),
        with("cnf", json!({ "jkt": "x" })),
        with("client_id", json!(1)),
        with("scope", json!(1)),
    ] {
        door.refusal(&claims).await;
    }
}

#[tokio::test]
async fn no_algorithm_but_the_listed_ones_and_no_key_but_the_set_s() {
    let door = Door::new();
    let good = door.issuer.token(&claims());
    let headers = [
        json!({ "alg": "none", "kid": "es" }),
        json!({ "alg": "None" }),
        json!({ "alg": "HS256", "kid": "es" }),
        json!({ "alg": "RS512", "kid": "rsa" }),
        json!({ "alg": "ES256", "kid": "nobody" }),
        json!({ "alg": "ES256" }),
        json!({ "alg": "ES256", "kid": "rsa" }),
        json!({ "alg": "RS256", "kid": "enc" }),
        json!({ "alg": "EdDSA", "kid": "es" }),
        json!({ "alg": "ES256", "kid": "es", "jwk": {} }),
        json!({ "alg": "ES256", "kid": "es", "jku": "https://evil.example" }),
        json!({ "alg": "ES256", "kid": "es", "crit": ["x"] }),
        json!({ "kid": "es" }),
    ];
    for header in headers {
        let response = door.knock(settings(door.source()), &door.issuer.sign(&header, &claims())).await;
        assert_eq!(response.unwrap_err().status, StatusCode::UNAUTHORIZED, "{header}");
    }
    let only_rs256 = OAuth { algorithms: vec!["RS256".into()], ..settings(door.source()) };
    assert!(door.knock(only_rs256, &good).await.is_err());
}

#[tokio::test]
async fn a_changed_token_is_refused_wherever_it_was_changed() {
    let door = Door::new();
    let good = door.issuer.token(&claims());
    let parts: Vec<&str> = good.split('.').collect();
    let other = door.issuer.token(&with("sub", json!("mallory")));
    let theirs: Vec<&str> = other.split('.').collect();
    for token in [
        format!("{}.{}.{}", parts[0], theirs[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}."),
        format!("{good}="),
        "a.b.c".to_owned(),
        String::new(),
    ] {
        assert!(door.knock(settings(door.source()), &token).await.is_err(), "{token}");
    }
}

#[tokio::test]
async fn a_second_member_of_a_name_hides_nothing() {
    let door = Door::new();
    let claims = claims().to_string().replacen('{', "{\"aud\":\"https://gw.example/mcp\",", 1);
    let header = json!({ "alg": "ES256", "kid": "es" }).to_string();
    let input = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes())).join(".");
    let signature = door.issuer.es256.sign(input.as_bytes()).unwrap();
    let token = format!("{input}.{}", BASE64URL_NOPAD.encode(&signature));
    let response = door.knock(settings(door.source()), &token).await.unwrap_err();
    assert!(response.why.contains("aud"), "{}", response.why);
}

#[tokio::test]
async fn a_missing_scope_is_403_and_starts_the_step_up() {
    let door = Door::new();
    for claims in [with("scope", json!("other mcp:tools2")), without("scope"), with("scope", json!(["x"]))] {
        let response = door.knock(settings(door.source()), &door.issuer.token(&claims)).await.unwrap_err();
        assert_eq!(response.status, StatusCode::FORBIDDEN);
        let header = response.www_authenticate.unwrap();
        assert!(header.starts_with("Bearer error=\"insufficient_scope\", scope=\"mcp:tools\""), "{header}");
        assert!(header.contains("resource_metadata="), "{header}");
    }
    let scp = {
        let mut c = without("scope");
        c["scp"] = json!(["mcp:tools"]);
        c
    };
    assert!(door.knock(settings(door.source()), &door.issuer.token(&scp)).await.is_ok());
}

#[tokio::test]
async fn a_configured_type_of_token_is_demanded() {
    let door = Door::new();
    let typed = |typ: Option<&str>| OAuth { token_type: typ.map(str::to_owned), ..settings(door.source()) };
    let token = |typ: &str| door.issuer.sign(&json!({ "alg": "ES256", "kid": "es", "typ": typ }), &claims());
    assert!(door.knock(typed(Some("at+jwt")), &token("application/at+JWT")).await.is_ok());
    assert!(door.knock(typed(Some("at+jwt")), &token("JWT")).await.is_err());
}

#[tokio::test]
async fn only_one_authorization_header_and_only_bearer() {
    let door = Door::new();
    let check = check(&settings(door.source()));
    let now = Timestamp::from_second(NOW).unwrap();
    let good = format!("Bearer {}", door.issuer.token(&claims()));
    let mut headers = HeaderMap::new();
    headers.append("authorization", good.parse().unwrap());
    headers.append("authorization", good.parse().unwrap());
    assert!(check.admit(&headers, now).await.is_err());
    headers.clear();
    headers.insert("authorization", good.replace("Bearer", "DPoP").parse().unwrap());
    assert!(check.admit(&headers, now).await.is_err());
    headers.insert("authorization", good.replace("Bearer", "bEARER").parse().unwrap());
    assert!(check.admit(&headers, now).await.is_ok());
}

#[test]
fn a_set_with_a_private_key_or_without_a_usable_one_is_refused() {
    let private = json!({ "keys": [{ "kty": "RSA", "n": "AQAB", "e": "AQAB", "d": "AQAB" }] });
    let symmetric = json!({ "keys": [{ "kty": "oct", "k": "AQAB" }] });
    for set in [private, symmetric, json!({ "keys": [] }), json!([]), json!({ "keys": ["x"] })] {
        assert!(super::jwks::parse(set.to_string().as_bytes()).is_err(), "{set}");
    }
    assert_eq!(super::jwks::parse(Issuer::new().jwks().to_string().as_bytes()).unwrap().len(), 3);
}

#[tokio::test]
async fn mode_a_shows_metadata_of_its_own() {
    let door = Door::new();
    let check = check(&settings(door.source()));
    assert_eq!(check.metadata().path(), "/.well-known/oauth-protected-resource/mcp");
    let shown: Value = serde_json::from_slice(&check.metadata().document().await.unwrap()).unwrap();
    assert_eq!(shown["resource"], GATEWAY);
    assert_eq!(shown["authorization_servers"], json!([ISSUER]));
}

/// Serves a text that can be replaced, and counts the requests.
async fn serving(text: Arc<std::sync::Mutex<String>>) -> (url::Url, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let answer = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let text = text.lock().unwrap().clone();
        async move { text }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/doc", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/doc", get(answer))).await });
    (url, asked)
}

#[tokio::test]
async fn mode_b_shows_the_server_s_metadata_as_they_are() {
    let text = r#"{ "resource":"https://up.example/mcp" , "x":1e2}"#;
    let (metadata, asked) = serving(Arc::new(std::sync::Mutex::new(text.to_owned()))).await;
    let door = Door::new();
    let check = check(&OAuth { mode: OAuthMode::Upstream { metadata }, ..mode_b(door.source()) });
    assert_eq!(check.metadata().document().await.unwrap(), text);
    assert_eq!(check.metadata().document().await.unwrap(), text);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn keys_at_a_url_are_fetched_once_and_strangers_tokens_do_not_fetch_them_again() {
    let issuer = Issuer::new();
    let (url, asked) = serving(Arc::new(std::sync::Mutex::new(issuer.jwks().to_string()))).await;
    let check = check(&settings(KeySource::Url { url, ca_file: None }));
    for _ in 0..3 {
        admit(&check, &issuer.token(&claims())).await.unwrap();
        let unknown = issuer.sign(&json!({ "alg": "ES256", "kid": "unknown" }), &claims());
        assert_eq!(admit(&check, &unknown).await.unwrap_err().status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_check_of_the_same_source_goes_on_with_the_keys_that_were_fetched() {
    let issuer = Issuer::new();
    let text = Arc::new(std::sync::Mutex::new(issuer.jwks().to_string()));
    let (url, asked) = serving(text.clone()).await;
    let (fetched, base) = (FetchedKeys::default(), "https://gw.example".parse().unwrap());
    let settings = settings(KeySource::Url { url, ca_file: None });
    let check = |path: &str, settings: &OAuth| TokenCheck::new(settings, &base, path, &fetched).unwrap();
    let before = check("/mcp", &settings);
    admit(&before, &issuer.token(&claims())).await.unwrap();
    *text.lock().unwrap() = "out of order".to_owned();
    let narrower = OAuth { scopes: Vec::new(), ..settings };
    admit(&check("/mcp", &narrower), &issuer.token(&claims())).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // For another source, no keys are known.
    let elsewhere = KeySource::Url { url: "http://127.0.0.1:9/jwks".parse().unwrap(), ca_file: None };
    let other = check("/mcp", &OAuth { keys: elsewhere, ..narrower });
    assert!(admit(&other, &issuer.token(&claims())).await.is_err());
}

#[tokio::test]
async fn while_the_keys_are_out_of_reach_nobody_comes_in() {
    let url: url::Url = "http://127.0.0.1:9/jwks".parse().unwrap();
    let response =
        admit(&check(&settings(KeySource::Url { url, ca_file: None })), &Issuer::new().token(&claims()))
            .await;
    assert_eq!(response.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
    let (url, _) = serving(Arc::new(std::sync::Mutex::new("x".repeat(300_000)))).await;
    let response =
        admit(&check(&settings(KeySource::Url { url, ca_file: None })), &Issuer::new().token(&claims()))
            .await;
    assert_eq!(response.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_flood_of_tokens_does_not_ask_again_and_again_for_keys_that_cannot_be_had() {
    let (url, asked) = serving(Arc::new(std::sync::Mutex::new("no keys".to_owned()))).await;
    let door = Door::new();
    let check = check(&settings(KeySource::Url { url, ca_file: None }));
    let token = door.issuer.token(&claims());
    for _ in 0..20 {
        assert!(admit(&check, &token).await.is_err());
    }
    // One fetch, unless this machine took seconds for twenty refusals.
    assert!(asked.load(Ordering::Relaxed) < 5);
}
