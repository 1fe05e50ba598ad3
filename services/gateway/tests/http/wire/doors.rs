//! Who may come in, and in what form (sections 1.1 and 1.3, V-11, X-2).

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;

use crate::front::{CALL, DONE, PassThrough, Settings, exchange, modern_text};

async fn world(settings: Settings) -> PassThrough {
    PassThrough::set(settings, |_, wire| wire.json(DONE)).await
}

fn guarded() -> Settings {
    Settings {
        hosts: vec!["127.0.0.1".into(), "gw.example".into()],
        origins: vec!["https://app.example".into()],
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_request_from_an_unlisted_origin_is_403() {
    let world = world(guarded()).await;
    for origin in [
        "https://evil.example",
        "null",
        "https://app.example.evil.example",
        "https://app.example:8443",
        "file://",
        "http://localhost.evil.example",
    ] {
        let posted = world.post(CALL).header("origin", origin).send().await.unwrap();
        let got = world.http.get(world.url()).header("origin", origin).send().await.unwrap();
        let deleted = world.http.delete(world.url()).header("origin", origin).send().await.unwrap();
        assert_eq!(
            [posted.status().as_u16(), got.status().as_u16(), deleted.status().as_u16()],
            [403; 3],
            "{origin}"
        );
        assert!(!posted.headers().contains_key("access-control-allow-origin"));
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_listed_page_and_pages_of_this_machine_may_call_and_read_the_answer() {
    let world = world(guarded()).await;
    for origin in ["https://app.example", "http://localhost:6274", "http://127.0.0.1:1"] {
        let posted = world.post(CALL).header("origin", origin).send().await.unwrap();
        assert_eq!(posted.status(), 200);
        assert_eq!(posted.headers()["access-control-allow-origin"], origin);
        assert!(
            posted.headers()["access-control-expose-headers"].to_str().unwrap().contains("mcp-session-id")
        );
        assert_eq!(world.requests().last().unwrap().header("origin"), None);
    }
    let asked =
        world.http.request(http::Method::OPTIONS, world.url()).header("origin", "https://app.example");
    let asked = asked
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "mcp-session-id");
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.headers()["access-control-allow-headers"], "mcp-session-id");
}

#[tokio::test]
async fn a_request_for_an_unlisted_host_is_403() {
    let world = world(guarded()).await;
    for (host, expected) in [
        ("evil.example", 403),
        ("evil.example:80", 403),
        ("gw.example", 200),
        ("GW.example:7400", 200),
        ("127.0.0.1:9", 200),
        ("127.0.0.1.evil.example", 403),
    ] {
        let answer = world.post(CALL).header("host", host).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{host}");
    }
    // A page on the rebound name is of that name, and a local page cannot help a foreign name.
    let answer = world
        .post(CALL)
        .header("host", "gw.example")
        .header("origin", "http://localhost:1")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 403);
    let twice = format!(
        "POST /mcp HTTP/1.1\r\nhost: gw.example\r\nhost: evil.example\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{CALL}",
        CALL.len()
    );
    let answer = exchange(world.raw().await, twice.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn a_body_must_be_uncompressed_json() {
    let world = world(Settings::default()).await;
    let send = |media: &'static str, coding: Option<&'static str>| {
        let request = world.http.post(world.url()).body(CALL).header("content-type", media);
        match coding {
            Some(coding) => request.header("content-encoding", coding).send(),
            None => request.send(),
        }
    };
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "application/jsonx",
        "",
    ] {
        let refused = send(media, None).await.unwrap();
        assert_eq!(
            (refused.status().as_u16(), refused.headers().get("accept-encoding")),
            (415, None),
            "{media}"
        );
    }
    for coding in ["gzip", "br", "identity, gzip", "deflate"] {
        let refused = send("application/json", Some(coding)).await.unwrap();
        assert_eq!(refused.status(), 415, "{coding}");
        assert_eq!(refused.headers()["accept-encoding"], "identity", "{coding}");
    }
    assert!(world.requests().is_empty());
    for media in ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""]
    {
        assert_eq!(send(media, None).await.unwrap().status(), 200, "{media}");
    }
}

#[tokio::test]
async fn a_request_needs_a_clear_host_and_transfer_coding() {
    let world = world(Settings::default()).await;
    for (fields, status) in [
        ("", "400 Bad Request"),
        ("host: x y\r\n", "400 Bad Request"),
        ("host: x\r\ntransfer-encoding: gzip, chunked\r\n", "501 Not Implemented"),
        ("host: x\r\ntransfer-encoding: chunked, chunked\r\n", "400 Bad Request"),
    ] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{fields}content-type: application/json\r\nconnection: close\r\n\r\n"
        );
        let answer =
            exchange(world.raw().await, format!("{head}{:x}\r\n{CALL}\r\n0\r\n\r\n", CALL.len()).as_bytes())
                .await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields:?}: {answer}");
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_message_over_the_length_limit_is_413() {
    let mut wishes = Settings::default();
    wishes.intake.body_bytes = 1000;
    let world = world(wishes).await;
    let of = |length: usize| {
        let around = r#"{"id":1,"method":"x","params":{"a":""}}"#.len();
        format!(r#"{{"id":1,"method":"x","params":{{"a":"{}"}}}}"#, "y".repeat(length - around))
    };
    assert_eq!(world.post(of(1000)).send().await.unwrap().status(), 200);
    assert_eq!(world.post(of(1001)).send().await.unwrap().status(), 413);
    // And one that does not say how long it will be.
    let endless = format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{}",
        "400\r\n".to_owned() + &" ".repeat(0x400) + "\r\n"
    );
    let answer = exchange(world.raw().await, endless.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_rate_limited_address_gets_429_with_retry_after() {
    let mut wishes = Settings::default();
    (wishes.intake.requests_per_second, wishes.intake.burst) = (1, 3);
    let world = world(wishes).await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let answer = world.post(CALL).send().await.unwrap();
        statuses.push(answer.status().as_u16());
        if answer.status() == 429 {
            assert_eq!(answer.headers()["retry-after"], "1");
        }
    }
    assert_eq!(statuses[..3], [200; 3]);
    assert!(statuses.contains(&429));
    assert!(world.requests().len() < 5);
}

#[tokio::test]
async fn a_rate_limited_page_is_counted_under_its_route() {
    let registry = MetricRegistry::default();
    let mut wishes = Settings {
        pages: Router::new().route("/page/{number}", get(async || "page")),
        http: Arc::new(HttpMetrics::new(&registry).unwrap()),
        ..Settings::default()
    };
    (wishes.intake.requests_per_second, wishes.intake.burst) = (1, 1);
    let world = world(wishes).await;
    let page = |path: &str| world.http.get(format!("http://{}{path}", world.at)).send();
    assert_eq!(page("/page/1").await.unwrap().status(), 200);
    for path in ["/page/2", "/elsewhere"] {
        while page(path).await.unwrap().status() != 429 {}
    }
    let text = registry.text().unwrap();
    for (status, route) in [(200, "/page/{number}"), (429, "/page/{number}"), (429, "")] {
        let labels =
            format!(r#"http_request_method="GET",http_response_status_code="{status}",http_route="{route}""#);
        let counted = format!("http_server_request_duration_seconds_count{{{labels}}}");
        assert!(text.contains(&counted), "{counted}{text}");
    }
}

#[tokio::test]
async fn a_malformed_revision_counts_as_legacy() {
    let world = world(Settings::default()).await;
    for version in ["DRAFT-2026-v1", "zzzz", "20xx-99-99", "2026-07-28-draft"] {
        let answer = world.post(CALL).header("mcp-protocol-version", version).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{version}");
    }
    assert!(world.notes.all().iter().all(|note| !note.contains("era: Modern")));
    assert_eq!(world.notes.all().iter().filter(|note| note.contains("era: Legacy")).count(), 4);
    let modern = world.post(CALL).header("mcp-protocol-version", "2026-07-28").send().await.unwrap();
    assert_eq!(modern.status(), 400);
    assert!(modern.text().await.unwrap().contains("-32602"));
    assert_eq!(world.requests().len(), 4);
}

#[tokio::test]
async fn a_missing_mirror_header_is_left_to_the_server_outside_calls() {
    let world = world(Settings::default()).await;
    let list = modern_text("1", "tools/list", "");
    let bare = world.http.post(world.url()).header("content-type", "application/json").body(list);
    assert_eq!(bare.send().await.unwrap().status(), 200);
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_header_with_two_values_is_refused() {
    let world = world(Settings::default()).await;
    for (name, one, other) in [
        ("mcp-session-id", "a", "b"),
        ("mcp-protocol-version", "2025-06-18", "2026-07-28"),
        ("last-event-id", "1", "2"),
        ("mcp-method", "tools/call", "tools/list"),
        ("content-type", "application/json", "text/plain"),
        ("content-length", "1", "2"),
        ("host", "x", "y"),
        ("origin", "http://localhost", "http://evil.example"),
        ("agentroa", "e30", "W10"),
        ("agentroa-proof", "a", "b"),
    ] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: x\r\n{name}: {one}\r\n{name}: {other}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{CALL}",
            CALL.len()
        );
        let answer = exchange(world.raw().await, text.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{name}: {answer}");
    }
    assert!(world.requests().is_empty());
}
