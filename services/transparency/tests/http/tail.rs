//! Following the log over server-sent events: in order, without loss, and never what is not signed.

use std::time::Duration;

use crate::common::{Place, Site, refusal, statement};
use reqwest::Method;
use scitt::SignedStatement;
use serde_json::{Value, json};
use serving::tls::TlsFiles;
use store::{FailingStore, Memory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use transparency::{Limits, TailLimits};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// In which nothing must happen.
const A_WHILE: Duration = Duration::from_millis(700);

/// An event, as a browser reads it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Event {
    kind: String,
    data: Option<String>,
    id: Option<String>,
    comment: bool,
}

impl Event {
    fn entry(&self) -> Value {
        assert_eq!(self.kind, "entry", "{self:?}");
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

/// A reader of a stream.
struct Reader {
    response: reqwest::Response,
    read: String,
    /// What a browser would send when it comes back.
    last: Option<String>,
}

impl Reader {
    async fn of(site: &Site, query: &str) -> Self {
        Self::back(site, query, None).await
    }

    async fn back(site: &Site, query: &str, last: Option<&str>) -> Self {
        Self::by(&site.client, &site.url, query, last).await
    }

    async fn by(client: &reqwest::Client, url: &str, query: &str, last: Option<&str>) -> Self {
        let mut request = client.get(format!("{url}/v1/entries/stream{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{query}");
        Self { response, read: String::new(), last: None }
    }

    /// The next block of lines; `None` once the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        timeout(PATIENCE, self.block()).await.expect("something happens")
    }

    async fn block(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => event.id = Some(id.to_owned()),
                        Some(("event", kind)) => event.kind = kind.to_owned(),
                        Some(("data", data)) => assert!(event.data.replace(data.to_owned()).is_none()),
                        Some(("", _)) => event.comment = true,
                        Some(("retry", _)) => {}
                        _ => panic!("{line}"),
                    }
                }
                self.last = event.id.clone().or(self.last.take());
                self.read = rest.to_owned();
                return Some(event);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event that says something.
    async fn event(&mut self) -> Option<Event> {
        loop {
            let event = self.next().await?;
            if event.data.is_some() {
                return Some(event);
            }
        }
    }

    /// The leaves of the next so many entries.
    async fn leaves(&mut self, count: usize) -> Vec<u64> {
        let mut leaves = Vec::new();
        while leaves.len() < count {
            let event = self.event().await.unwrap();
            let entry = event.entry();
            assert_eq!(event.id.unwrap(), entry["index"].to_string());
            leaves.push(entry["index"].as_u64().unwrap());
        }
        leaves
    }

    async fn must_be_silent(&mut self) {
        if let Ok(event) = timeout(A_WHILE, self.event()).await {
            panic!("{event:?}");
        }
    }
}

async fn grow(site: &Site, to: std::ops::Range<u64>) {
    for n in to {
        site.registered(&statement(n)).await;
    }
}

#[tokio::test]
async fn a_stream_tells_every_entry_once_and_in_order_as_the_list_shows_it() {
    let site = Place::new().start().await;
    grow(&site, 1..6).await;
    let mut reader = Reader::of(&site, "?from=0").await;
    let listed = site.get("/v1/entries").await.json();
    for entry in listed["entries"].as_array().unwrap() {
        assert_eq!(&reader.event().await.unwrap().entry(), entry);
    }
    grow(&site, 6..20).await;
    assert_eq!(reader.leaves(14).await, (6..20).collect::<Vec<_>>());
    let headers = reader.response.headers();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert!(headers["cache-control"].to_str().unwrap().contains("no-store"));
    assert!(!headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn a_stream_begins_where_it_is_told_to_and_else_with_what_comes() {
    let site = Place::new().start().await;
    grow(&site, 1..6).await;
    let mut news = Reader::of(&site, "").await;
    assert_eq!(
        news.next().await.unwrap().id.as_deref(),
        Some("5"),
        "so that nothing is lost before the first"
    );
    news.must_be_silent().await;
    assert_eq!(Reader::of(&site, "?after=2").await.leaves(3).await, [3, 4, 5]);
    assert_eq!(Reader::of(&site, "?after=none").await.leaves(2).await, [0, 1]);
    assert_eq!(Reader::of(&site, "?from=4").await.leaves(2).await, [4, 5]);
    let mut back = Reader::back(&site, "?after=0", Some("3")).await;
    assert_eq!(back.leaves(2).await, [4, 5], "what was seen goes before what was asked for at first");
    let mut ends = Reader::of(&site, "?after=5").await;
    grow(&site, 6..7).await;
    assert_eq!(ends.leaves(1).await, [6]);
    assert_eq!(news.leaves(1).await, [6]);
}

#[tokio::test]
async fn a_position_that_is_none_is_refused() {
    let site = Place::new().start().await;
    grow(&site, 1..3).await;
    let malformed = |code: &str| refusal(400, "Malformed request", code);
    for query in [
        "after=",
        "after=x",
        "after=-1",
        "after=%2B1",
        "after=1.0",
        "from=-1",
        "after=18446744073709551615",
        "after=1&from=1",
        "limit=3",
        "from_time=0",
        "colour=red",
    ] {
        let answer = site.get(&format!("/v1/entries/stream?{query}")).await;
        assert_eq!(answer.refusal(), malformed("stream-position"), "{query}");
    }
    for id in ["x", "-1", "0x1", "18446744073709551615", "1 2"] {
        let answer = site.send(Method::GET, "/v1/entries/stream", &[("last-event-id", id)], "").await;
        assert_eq!(answer.refusal(), malformed("stream-position"), "{id}");
    }
    for query in ["after=3", "from=4", "from=18446744073709551615"] {
        let answer = site.get(&format!("/v1/entries/stream?{query}")).await;
        assert_eq!(answer.refusal(), malformed("stream-ahead"), "{query}");
    }
    assert_eq!(site.get("/v1/entries/stream?digest=xyz").await.status, 400);
}

#[tokio::test]
async fn a_filter_tells_what_a_search_finds_and_loses_nothing_when_its_reader_comes_back() {
    let site = Place::new().start().await;
    grow(&site, 1..4).await;
    let mut reader = Reader::of(&site, "?from=0&subject=thing-2").await;
    assert_eq!(reader.leaves(1).await, [2]);
    reader.must_be_silent().await;
    let place = reader.last.clone();
    site.registered(&testkit::opaque("thing-2", &json!({ "again": true }))).await;
    assert_eq!(reader.leaves(1).await, [4]);
    drop(reader);
    let mut back = Reader::back(&site, "?from=0&subject=thing-2", place.as_deref()).await;
    assert_eq!(back.leaves(1).await, [4]);
    back.must_be_silent().await;
}

#[tokio::test]
async fn what_no_signed_head_covers_is_not_told() {
    let store = FailingStore::new(Memory::new());
    let site = Place::new().start_on(store.clone(), |_| {}).await;
    let mut reader = Reader::of(&site, "?from=0").await;
    assert_eq!(reader.leaves(1).await, [0]);
    store.hold_commits();
    let one = statement(1);
    let waiting = site.register(&one);
    let (mut early, quiet) = (None, reader.must_be_silent());
    tokio::select! {
        answer = waiting => early = Some(answer.status),
        () = quiet => {}
    }
    assert!(early.is_none_or(|status| status == 202));
    store.release_commits();
    assert_eq!(reader.leaves(1).await, [1]);
}

#[tokio::test]
async fn a_stream_with_nothing_to_tell_says_that_it_lives_and_how_far_it_is() {
    let heartbeat = Duration::from_millis(100);
    let tail = TailLimits { heartbeat, ..TailLimits::default() };
    let site = Place::new().start_with(|config| config.limits.tail = tail).await;
    let mut reader = Reader::of(&site, "?subject=nothing").await;
    assert!(!reader.next().await.unwrap().comment);
    assert!(reader.next().await.unwrap().comment);
    grow(&site, 1..3).await;
    while reader.last.as_deref() != Some("2") {
        assert!(reader.next().await.unwrap().comment, "a filter that finds nothing moves on all the same");
    }
}

#[tokio::test]
async fn a_client_has_so_many_streams_and_all_have_so_many() {
    let few = |places, places_per_client| TailLimits { places, places_per_client, ..TailLimits::default() };
    let site = Place::new().start_with(|config| config.limits.tail = few(9, 2)).await;
    let open = [Reader::of(&site, "").await, Reader::of(&site, "").await];
    let turned_away = site.get("/v1/entries/stream").await;
    assert_eq!(turned_away.refusal(), refusal(429, "Too Many Requests", "streams-too-many"));
    assert!(turned_away.header("retry-after").is_some());
    drop(open);
    timeout(PATIENCE, async {
        // The service learns of a reader who left when it next tells him something.
        let mut n = 1;
        while site.client.get(format!("{}/v1/entries/stream", site.url)).send().await.unwrap().status() != 200
        {
            site.registered(&statement(n)).await;
            n += 1;
        }
    })
    .await
    .expect("a place that was left is free again");

    let site = Place::new().start_with(|config| config.limits.tail = few(1, 9)).await;
    let _one = Reader::of(&site, "").await;
    let turned_away = site.get("/v1/entries/stream").await;
    assert_eq!(turned_away.refusal(), refusal(503, "Service Unavailable", "streams-full"));
    assert!(turned_away.header("retry-after").is_some());
}

#[tokio::test]
async fn readers_who_leave_leave_their_places_within_a_few_seconds() {
    let site = Place::new().start().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(Reader::of(&site, "").await);
    }
    assert_eq!(site.get("/v1/entries/stream").await.status, 429);
    drop(open);
    let url = format!("{}/v1/entries/stream", site.url);
    // Nothing is registered meanwhile; a heartbeat comes every 15 seconds only later.
    timeout(Duration::from_secs(13), async {
        while site.client.get(&url).send().await.unwrap().status() != 200 {
            sleep(Duration::from_millis(200)).await;
        }
    })
    .await
    .expect("a place is free");
}

#[tokio::test]
async fn every_way_in_which_a_stream_may_end_is_counted_from_the_start() {
    let site = Place::new().start().await;
    for reason in ["left", "too-slow", "stopping", "unavailable"] {
        site.until_metrics_have(&format!("tabellion_entry_streams_ended_total{{reason=\"{reason}\"}} 0"))
            .await;
    }
}

#[tokio::test]
async fn neither_the_time_for_a_request_nor_that_for_a_body_ends_a_stream() {
    let short = Limits {
        request_time: Duration::from_millis(100),
        body_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let site = Place::new().start_with(|config| config.limits = short).await;
    let mut reader = Reader::of(&site, "").await;
    sleep(Duration::from_millis(600)).await;
    grow(&site, 1..2).await;
    assert_eq!(reader.leaves(1).await, [1]);
}

#[tokio::test]
async fn a_service_that_stops_ends_its_streams_and_says_so() {
    let site = Place::new().start().await;
    let mut reader = Reader::of(&site, "?from=0").await;
    assert_eq!(reader.leaves(1).await, [0]);
    timeout(Duration::from_secs(10), site.service.stop()).await.expect("a stop within ten seconds");
    let last = reader.event().await.unwrap();
    assert_eq!((last.kind.as_str(), last.id), ("end", None));
    assert!(last.data.unwrap().contains("\"reason\":\"stopping\""));
    assert_eq!(reader.next().await, None);
}

/// A large statement: what fills the buffers of a socket.
fn long(n: u64) -> SignedStatement {
    testkit::opaque(&format!("{n}-{}", "x".repeat(3_000)), &json!({ "n": n }))
}

#[tokio::test]
async fn a_reader_who_takes_nothing_is_cut_off_and_goes_on_without_loss() {
    let (patience, grace) = (Duration::from_millis(300), Duration::from_millis(300));
    let tail = TailLimits { patience, grace, ..TailLimits::default() };
    let site = Place::new().start_with(|config| config.limits.tail = tail).await;
    const COUNT: u64 = 1_200;
    for n in 1..COUNT {
        assert_eq!(site.register(&long(n)).await.status, 201);
    }
    let address = site.url.trim_start_matches("http://");
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut socket = socket.connect(address.parse().unwrap()).await.unwrap();
    let request = format!("GET /v1/entries/stream?from=0 HTTP/1.1\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    // Nothing is read until the service has given up on this reader.
    ended(&site, "too-slow").await;
    site.until_metrics_have("tabellion_entry_streams 0").await;
    let mut taken = Vec::new();
    let _ = timeout(PATIENCE, socket.read_to_end(&mut taken)).await.expect("the connection is closed");
    let taken = String::from_utf8_lossy(&taken);
    let seen: Vec<u64> = taken
        .split("\n\n")
        .filter(|block| block.contains("data: ") && block.ends_with('}'))
        .filter_map(|block| block.split_once("id: ")?.1.split_once('\n')?.0.parse().ok())
        .collect();
    let last = *seen.last().unwrap();
    assert!(seen.len() > 1 && last < COUNT - 1, "{last}");
    assert_eq!(seen, (0..=last).collect::<Vec<_>>());
    let mut back = Reader::back(&site, "", Some(&last.to_string())).await;
    let rest = (last + 1..COUNT).collect::<Vec<_>>();
    assert_eq!(back.leaves(rest.len()).await, rest);
}

#[tokio::test]
async fn a_slow_reader_over_http_2_reads_why_his_stream_ended() {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(place.path("tls.pem"), made.cert.pem()).unwrap();
    place.write_private("tls.key", &made.signing_key.serialize_pem());
    let site = place
        .start_with(|config| {
            let files = TlsFiles { certificate: place.path("tls.pem"), key: place.path("tls.key") };
            config.tls = Some(files);
            config.limits.tail =
                TailLimits { patience: Duration::from_millis(300), grace: PATIENCE, ..TailLimits::default() };
        })
        .await;
    let url = format!("https://localhost:{}", site.service.addresses().public.port());
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([root])
        .http2_initial_stream_window_size(64 << 10)
        .build()
        .unwrap();
    for n in 1..300 {
        let body = long(n).bytes().clone();
        let answer =
            client.post(format!("{url}/entries")).header("content-type", crate::common::COSE).body(body);
        assert_eq!(answer.send().await.unwrap().status(), 201);
    }
    let mut reader = Reader::by(&client, &url, "?from=0", None).await;
    assert_eq!(reader.response.version(), reqwest::Version::HTTP_2);
    ended(&site, "too-slow").await;
    let mut next = 0;
    let end = loop {
        let event = reader.event().await.unwrap();
        if event.kind == "end" {
            break event;
        }
        assert_eq!(event.entry()["index"], next);
        next += 1;
    };
    assert!(end.data.unwrap().contains("\"reason\":\"too-slow\""));
    assert_eq!(reader.next().await, None);
    let mut back = Reader::by(&client, &url, "", reader.last.as_deref()).await;
    assert_eq!(back.leaves(1).await, [next]);
}

/// Waits until a stream has ended for this reason.
async fn ended(site: &Site, reason: &str) {
    let counted = format!("tabellion_entry_streams_ended_total{{reason=\"{reason}\"}} 1");
    site.until_metrics_have(&counted).await;
}

#[tokio::test]
async fn many_readers_at_the_end_of_the_log_are_told_the_same() {
    let site = Place::new().start().await;
    let mut readers = Vec::new();
    for _ in 0..24 {
        readers.push(Reader::of(&site, "").await);
    }
    grow(&site, 1..30).await;
    for reader in &mut readers {
        assert_eq!(reader.leaves(29).await, (1..30).collect::<Vec<_>>());
    }
}
