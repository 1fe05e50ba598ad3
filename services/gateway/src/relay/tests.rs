use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::{StreamExt, stream};
use proptest::prelude::*;

use super::tapped::{Leaving, Tapped};
use super::*;
use crate::upstream::events::{Event, Splitter, message};

/// Reference reader: the data of each event that the specification dispatches from a whole stream.
fn read_by_the_book(stream: &[u8]) -> Vec<Vec<u8>> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while at < stream.len() {
        match stream[at] {
            b'\r' | b'\n' => {
                at += usize::from(stream[at..].starts_with(b"\r\n"));
                lines.push(Vec::new());
            }
            byte => lines.last_mut().unwrap().push(byte),
        }
        at += 1;
    }
    // An event without its final blank line is discarded.
    lines.pop();
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            let joined = std::mem::take(&mut data).join(&b'\n');
            if !joined.is_empty() {
                events.push(joined);
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        if &line[..colon] == b"data" {
            data.push(value.strip_prefix(b" ").unwrap_or(value).to_vec());
        }
    }
    events
}

fn split(chunks: &[&[u8]]) -> Vec<Event> {
    let mut splitter = Splitter::default();
    chunks.iter().flat_map(|chunk| splitter.push(Bytes::copy_from_slice(chunk)).unwrap()).collect()
}

fn data(events: &[Event]) -> Vec<Vec<u8>> {
    events.iter().filter_map(Event::data).map(|data| data.to_vec()).collect()
}

#[test]
fn an_event_is_complete_with_its_blank_line() {
    let mut splitter = Splitter::default();
    assert!(splitter.push("id: 1\ndata: {}\n".into()).unwrap().is_empty());
    let events = splitter.push("\n".into()).unwrap();
    assert_eq!(data(&events), [b"{}"]);
    assert_eq!(events[0].clone().into_raw(), "id: 1\ndata: {}\n\n");
}

#[test]
fn a_blank_line_of_a_lone_cr_is_not_waited_on() {
    let mut splitter = Splitter::default();
    let events = splitter.push("data: 1\r\n\r".into()).unwrap();
    assert_eq!(data(&events), [b"1"]);
    let rest = splitter.push("\ndata: 2\r\r".into()).unwrap();
    assert_eq!(rest[0].clone().into_raw(), "\n");
    assert_eq!(data(&rest), [b"2"]);
}

#[test]
fn comments_and_priming_events_are_nobodys_messages() {
    let events = split(&[b": hello\n", b"id: 1\ndata: \n\n", b"retry: 5\n\n", b"id: 2\ndata\n\n"]);
    assert_eq!(data(&events), Vec::<Vec<u8>>::new());
    assert_eq!(events.len(), 4);
    // A comment keeps a connection alive: it is passed at once, without waiting for a blank line.
    assert_eq!(events[0].clone().into_raw(), ": hello\n");
}

#[test]
fn data_is_replaced_where_it_stood() {
    let events = split(&["event: message\r\ndata: {\"a\":\r\n: why\r\ndata: 1}\r\nid: 7\r\n\r\n".as_bytes()]);
    assert_eq!(data(&events), [b"{\"a\":\n1}"]);
    assert_eq!(
        events[0].with_data("{\"b\":\n2}".as_bytes()),
        "event: message\r\ndata: {\"b\":\r\ndata: 2}\r\n: why\r\nid: 7\r\n\r\n"
    );
    assert_eq!(events[0].without_data().unwrap(), "id: 7\r\n\r\n");
}

#[test]
fn line_ends_in_a_text_of_ours_do_not_break_its_event() {
    let text = "{\r\n\"a\":\r1,\n\"b\":2}";
    let events = split(&[&message(text.as_bytes())]);
    let read: serde_json::Value = serde_json::from_slice(&events[0].data().unwrap()).unwrap();
    assert_eq!(read, serde_json::json!({ "a": 1, "b": 2 }));
}

fn stream_of_lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("data: {\"a\":1}".to_owned()),
        Just("data:x".to_owned()),
        Just("data".to_owned()),
        Just("data: ".to_owned()),
        Just("database: 1".to_owned()),
        Just(": comment".to_owned()),
        Just("id: 5".to_owned()),
        Just("event: message".to_owned()),
        Just("retry: 10".to_owned()),
        Just(String::new()),
        Just(String::new()),
        "[a-z:\u{2028}\u{1F600} ]{0,8}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    (any::<bool>(), prop::collection::vec((line, end), 0..24), "[a-z:]{0,4}").prop_map(
        |(bom, lines, tail)| {
            let lines = lines.into_iter().map(|(line, end)| line + end).collect::<String>();
            format!("{}{lines}{tail}", if bom { "\u{feff}" } else { "" }).into_bytes()
        },
    )
}

fn cut(stream: &[u8], mut at: Vec<usize>) -> Vec<Bytes> {
    at.iter_mut().for_each(|at| *at %= stream.len() + 1);
    at.extend([0, stream.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| Bytes::copy_from_slice(&stream[pair[0]..pair[1]])).collect()
}

proptest! {
    #[test]
    fn however_it_is_cut_events_are_those_of_the_book_and_no_byte_changes(
        stream in stream_of_lines(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut splitter = Splitter::default();
        let mut events = Vec::new();
        for chunk in cut(&stream, cuts) {
            events.extend(splitter.push(chunk).unwrap());
        }
        prop_assert_eq!(data(&events), read_by_the_book(&stream));
        let written: Vec<u8> = events.iter().flat_map(|event| event.clone().into_raw()).collect();
        prop_assert!(stream.starts_with(&written));
        // An incomplete rest is not an event.
        prop_assert!(read_by_the_book(&stream[written.len()..]).is_empty());
    }

    #[test]
    fn replaced_data_is_read_as_what_replaced_it(stream in stream_of_lines(), text in "[{}:\", a-z0-9\r\n]{1,20}") {
        for event in split(&[&stream]).iter().filter(|event| event.data().is_some()) {
            let replaced = event.with_data(text.as_bytes());
            let expected = text.replace("\r\n", "\n").replace('\r', "\n").split('\n').collect::<Vec<_>>().join("\n");
            let read = read_by_the_book(&replaced);
            if expected.bytes().all(|byte| byte == b'\n') {
                continue;
            }
            // Compared line by line: a CRLF in the new data may become two line ends, which are whitespace to JSON in
            // either case.
            let words = |text: &[u8]| String::from_utf8_lossy(text).split('\n').filter(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(words(&read[0]), words(expected.as_bytes()));
        }
    }
}

/// A tap that records all messages, and acts as configured.
#[derive(Clone, Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<String>>>,
    withholds: bool,
    last: Option<Bytes>,
}

#[async_trait]
impl Tap for Watcher {
    async fn message(&mut self, text: Bytes) -> Passing {
        self.seen.lock().unwrap().push(String::from_utf8_lossy(&text).into_owned());
        if self.withholds { Passing::Withheld } else { Passing::Untouched }
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        self.seen.lock().unwrap().push(format!("{how:?}"));
        self.last.clone()
    }
}

async fn through(chunks: &[&'static str], watcher: &Watcher) -> String {
    let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
    let body = stream::iter(chunks).boxed();
    let mut tapped = Tapped::new(body, Box::new(watcher.clone()), Leaving::Dropped);
    let mut out = Vec::new();
    while let Some(bytes) = tapped.next().await {
        out.extend_from_slice(&bytes);
    }
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn a_tap_sees_messages_and_everything_else_passes() {
    let watcher = Watcher::default();
    let stream = [": hi\n\n", "id: 1\ndata: \n\nid", ": 2\nevent: message\ndata: {\"a\":1}\n\n", ":\n"];
    assert_eq!(through(&stream, &watcher).await, stream.concat());
    assert_eq!(*watcher.seen.lock().unwrap(), ["{\"a\":1}", "Complete { may_follow: true }"]);
}

#[tokio::test]
async fn what_is_withheld_leaves_its_id_and_last_words_come_last() {
    let last = Some(Bytes::from_static(b"{\"z\":26}"));
    let watcher = Watcher { withholds: true, last, ..Watcher::default() };
    let out = through(&["id: 1\ndata: {}\n\ndata: {}\n\n"], &watcher).await;
    assert_eq!(out, "id: 1\n\nevent: message\ndata: {\"z\":26}\n\n");
}

#[tokio::test]
async fn a_message_hidden_in_an_event_that_never_ends_goes_nowhere() {
    let watcher = Watcher::default();
    assert_eq!(through(&["data: {\"a\":1}\n\ndata: {\"b\":2}\n"], &watcher).await, "data: {\"a\":1}\n\n");
}
