//! Our own client against the witness, and against servers that are none.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use client::witness::{AddError, Options, WitnessClient};
use common::{Home, Log};
use merkle::TreeSize;
use tlog::cosignature;
use tlog::note::Note;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LOG: &str = "log.example";

fn to(url: &str) -> WitnessClient {
    WitnessClient::new(url, Options::default()).unwrap()
}

#[tokio::test]
async fn every_answer_of_a_witness_is_understood() {
    let (log, liar) = (Log::new(LOG), Log::forked(LOG, 5));
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let client = to(&witness.url());

    assert_eq!(client.latest(&log.origin).await.unwrap(), None);
    assert_eq!(client.add_checkpoint(&log.request(7, 8)).await, Err(AddError::Conflict(TreeSize::EMPTY)));
    let request = log.request(0, 8);
    let lines = client.add_checkpoint(&request).await.unwrap();
    let mut note = request.checkpoint;
    lines.iter().for_each(|line| note.add(line.clone()).unwrap());
    assert!(cosignature::verified(&note, &witness.key).is_some());
    assert_eq!(client.latest(&log.origin).await.unwrap(), Some(note));

    let refused = async |request| client.add_checkpoint(&request).await.unwrap_err();
    assert_eq!(refused(log.request(0, 9)).await, AddError::Conflict(TreeSize::new(8)));
    assert!(matches!(refused(liar.request(8, 9)).await, AddError::Unproven(_)));
    assert!(matches!(refused(Log::new("x.example").request(0, 1)).await, AddError::UnknownLog(_)));
    let mut unsigned = log.request(8, 9);
    unsigned.checkpoint = Note::sign(&log.text(9), &[&Log::new("x.example").key]).unwrap();
    assert!(matches!(refused(unsigned).await, AddError::Refused { status, .. } if status == 403));
    assert!(matches!(refused(log.request(9, 8)).await, AddError::Refused { status, .. } if status == 400));
    witness.stop().await;
    assert!(matches!(refused(log.request(8, 9)).await, AddError::Unreachable(_)));
}

#[tokio::test]
async fn what_no_witness_would_say_is_nonsense_and_never_a_cosignature() {
    let cosigned = "\u{2014} w AAAAAAAAAAA=\n";
    for (head, body) in [
        ("200 OK", String::new()),
        ("200 OK", "\n".into()),
        ("200 OK", "<html>".into()),
        ("200 OK", cosigned.trim_end().into()),
        ("200 OK", format!("{cosigned}\n{cosigned}")),
        ("200 OK", cosigned.repeat(65)),
        ("200 OK", "A".repeat(300 << 10)),
        ("409 Conflict", "8\n".into()),
        ("409 Conflict\r\ncontent-type: text/plain", "8\n".into()),
        ("409 Conflict\r\ncontent-type: text/x.tlog.size", "8".into()),
        ("409 Conflict\r\ncontent-type: text/x.tlog.size", "08\n".into()),
        ("409 Conflict\r\ncontent-type: text/x.tlog.size", "+8\n".into()),
        ("409 Conflict\r\ncontent-type: text/x.tlog.size", "18446744073709551616\n".into()),
    ] {
        let answer = asked(head, &body).await;
        assert!(matches!(answer, Err(AddError::Nonsense(_))), "{head} {body:.40}: {answer:?}");
    }
    for typed in ["text/x.tlog.size", "Text/X.tlog.size; charset=utf-8"] {
        let answer = asked(&format!("409 Conflict\r\ncontent-type: {typed}"), "8\n").await;
        assert_eq!(answer, Err(AddError::Conflict(TreeSize::new(8))), "{typed}");
    }
    assert_eq!(asked("200 OK", &cosigned.repeat(2)).await.unwrap(), 2);
}

#[tokio::test]
async fn who_is_busy_or_elsewhere_is_told_apart_and_quoted_without_control_characters() {
    let Err(AddError::Busy { status, words, retry_after }) =
        asked("503 Busy\r\nretry-after: 7", "later\x1b[31m\nplease").await
    else {
        panic!("it is busy")
    };
    assert_eq!((status.as_u16(), retry_after), (503, Some(Duration::from_secs(7))));
    assert_eq!(words, "later [31m please");
    assert!(matches!(asked("429 Slower", "").await, Err(AddError::Busy { .. })));
    // Nobody is followed elsewhere.
    let moved = asked("308 Moved\r\nlocation: http://127.0.0.1:1/", "").await;
    assert!(matches!(moved, Err(AddError::Refused { status, .. }) if status == 308), "{moved:?}");
}

#[tokio::test]
async fn a_witness_that_does_not_answer_is_left_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let options = Options { time: Duration::from_millis(200), ..Options::default() };
    let client = WitnessClient::new(&url, options).unwrap();
    let answer = client.add_checkpoint(&Log::new(LOG).request(0, 1)).await;
    assert!(matches!(answer, Err(AddError::Unreachable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_prefix_stays_in_front_and_connections_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = tokio::spawn(async move {
        // One connection for both requests: a second one would not be accepted.
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        for _ in 0..2 {
            heard.push(read_request(&mut stream).await);
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        heard
    });
    let client = to(&format!("http://{address}/w/1"));
    let log = Log::new(LOG);
    let request = log.request(0, 1);
    assert!(client.add_checkpoint(&request).await.is_err());
    assert_eq!(client.latest(&log.origin).await, Ok(None));
    let heard = heard.await.unwrap();
    assert!(heard[0].starts_with("POST /w/1/add-checkpoint HTTP/1.1\r\n"), "{}", heard[0]);
    assert!(heard[0].ends_with(&format!("\r\n\r\n{request}")), "{}", heard[0]);
    let digest = log.origin.digest();
    assert!(heard[1].starts_with(&format!("GET /w/1/{digest}/checkpoint HTTP/1.1\r\n")), "{}", heard[1]);
}

/// What the client makes of this answer: how many lines, or why not.
async fn asked(head: &str, body: &str) -> Result<usize, AddError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer =
        format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    });
    let lines = to(&url).add_checkpoint(&Log::new(LOG).request(0, 1)).await;
    server.await.unwrap();
    lines.map(|lines| lines.len())
}

/// A request with its body, if it says how long that is.
async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut heard = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&heard).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "{text}");
        heard.extend_from_slice(&part[..read]);
    }
}
