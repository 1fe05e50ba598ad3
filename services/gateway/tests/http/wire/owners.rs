//! Whose a session is, and whose a challenge (R-27).

use admission::principal::TokenSubject;
use async_trait::async_trait;
use gateway::front::{Authorized, Authorizer};
use gateway::relay::Response;
use http::request::Parts;

use crate::front::{CALL, DONE, PassThrough, Settings};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
const CALLED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Takes every token; its text is the subject.
struct Believing;

#[async_trait]
impl Authorizer for Believing {
    async fn admit(&self, head: &Parts) -> Result<Authorized, Box<Response>> {
        let said = head.headers.get("authorization").and_then(|said| said.to_str().ok());
        let token = said.map(|sub| TokenSubject { iss: "as".into(), sub: sub.into(), client_id: None });
        Ok(Authorized { token, ..Authorized::default() })
    }
}

#[tokio::test]
async fn only_a_sessions_owner_may_use_or_end_it() {
    let settings = Settings { admits: std::sync::Arc::new(Believing), ..Settings::default() };
    let world = PassThrough::set(settings, |seen, wire| {
        let headers = [("mcp-session-id", "s-9"), ("content-type", "application/json")];
        let status = if seen.method() == "GET" { 405 } else { 200 };
        wire.answer(status, &headers, DONE.as_bytes());
    })
    .await;
    let post = |body: &'static str| {
        world.http.post(world.url()).header("content-type", "application/json").body(body)
    };
    let opened = post(INITIALIZE).header("authorization", "alice").send().await.unwrap();
    assert_eq!(opened.headers()["mcp-session-id"], "s-9");
    let before = world.requests().len();
    for stranger in [Some("mallory"), None] {
        for request in [
            post(CALL),
            post(CALLED),
            post(INITIALIZE),
            world.http.get(world.url()),
            world.http.delete(world.url()),
        ] {
            let request = request.header("mcp-session-id", "s-9");
            let request = match stranger {
                Some(stranger) => request.header("authorization", stranger),
                None => request,
            };
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 404, "{stranger:?}");
            assert!(response.text().await.unwrap().contains("-32001"));
        }
    }
    assert_eq!(world.requests().len(), before, "nothing of it reached the server");
    let own =
        post(CALL).header("mcp-session-id", "s-9").header("authorization", "alice").send().await.unwrap();
    assert_eq!(own.status(), 200);
    let other =
        post(CALL).header("mcp-session-id", "s-10").header("authorization", "bob").send().await.unwrap();
    assert_eq!(other.status(), 200, "a session that was not opened here is the server's to guard");
}

#[tokio::test]
async fn a_challenge_to_the_gateways_credential_is_removed() {
    let settings = Settings { is_ours: true, ..Settings::default() };
    let world = PassThrough::set(settings, |seen, wire| {
        let status = seen.header("x-wanted").map_or(200, |status| status.parse().unwrap());
        let challenge = ("www-authenticate", "Bearer resource_metadata=\"http://10.0.0.1/\"");
        wire.answer(status, &[challenge, ("content-type", "application/json")], b"{}");
    })
    .await;
    for wanted in ["401", "403"] {
        let response = world.post(CALL).header("x-wanted", wanted).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("www-authenticate"));
        let text = response.text().await.unwrap();
        assert!(text.contains("-31001") && !text.contains("10.0.0.1"), "{text}");
        let requests = [world.post(CALLED), world.http.get(world.url()), world.http.delete(world.url())];
        for request in requests {
            let response = request.header("x-wanted", wanted).send().await.unwrap();
            assert_eq!(response.status(), 502);
            assert!(!response.headers().contains_key("www-authenticate"));
        }
    }
    let fine = world.post(CALLED).header("x-wanted", "400").send().await.unwrap();
    assert_eq!((fine.status().as_u16(), fine.headers().contains_key("www-authenticate")), (400, false));
}
