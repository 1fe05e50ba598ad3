//! An OpenTelemetry collector for spans, which keeps what it gets, and the trace context of a client.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

/// The trace that the client is in.
pub const CLIENT_TRACE: [u8; 16] = [0x4b; 16];
/// The client's span.
pub const CLIENT_SPAN: [u8; 8] = [0x3f; 8];

/// A collector that keeps the requests undecoded: names, values and ids are in OTLP's protobuf as they are.
pub struct SpanCollector {
    /// The URL for `otlp`.
    pub url: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl SpanCollector {
    /// Starts a collector.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let keeps = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keeps = keeps.clone();
                thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    while let Some((path, body)) = request(&mut reader) {
                        assert_eq!(path, "/v1/traces");
                        keeps.lock().expect("no panic").extend(body);
                        (&stream)
                            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                            .expect("the exporter reads");
                    }
                });
            }
        });
        Self { url, received }
    }

    /// Returns how often these bytes were received.
    pub fn count(&self, bytes: impl AsRef<[u8]>) -> usize {
        let bytes = bytes.as_ref();
        self.received.lock().expect("no panic").windows(bytes.len()).filter(|window| *window == bytes).count()
    }

    /// Asserts that each text was received.
    #[track_caller]
    pub fn must_have(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.count(text) > 0, "{text}: {}", self.text());
        }
    }

    /// Asserts that none of the texts was received.
    #[track_caller]
    pub fn must_not_have(&self, texts: &[&str]) {
        for text in texts {
            assert_eq!(self.count(text), 0, "{text}: {}", self.text());
        }
    }

    /// Returns what was received, as far as it is text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().expect("no panic")).into_owned()
    }
}

/// The path and the body of the next request.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line
            .strip_prefix("content-length:")
            .map_or(length, |value| value.trim().parse().expect("a length"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.split(' ').nth(1)?.to_owned(), body))
}

/// Returns the `traceparent` of the client: [`CLIENT_SPAN`] in [`CLIENT_TRACE`], sampled.
pub fn traceparent() -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("00-{}-{}-01", hex(&CLIENT_TRACE), hex(&CLIENT_SPAN))
}

/// Returns a field of a span, as protobuf writes it: its tag, its length, its bytes (at most 127).
pub fn protobuf_field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(bytes.len()).expect("a short field")], bytes].concat()
}
