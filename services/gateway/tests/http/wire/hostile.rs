//! Clients that mean harm to HTTP itself.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::front::{CALL, DONE, PassThrough, Settings, exchange};

async fn world(settings: Settings) -> PassThrough {
    PassThrough::set(settings, |_, wire| wire.json(DONE)).await
}

fn hasty() -> Settings {
    let mut wishes = Settings::default();
    wishes.times.head = Duration::from_millis(300);
    wishes
}

#[tokio::test]
async fn a_slow_loris_is_hung_up_on() {
    let world = world(hasty()).await;
    // Silence, half a request line, half an HTTP/2 preface, headers that drip.
    for begun in ["", "POST /mc", "PRI * HTTP/2.0\r\n", "POST /mcp HTTP/1.1\r\nhost: x\r\nx-a: "] {
        let answer = exchange(world.raw().await, begun.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{begun:?}: {answer}");
    }
    assert_eq!(world.post(CALL).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn dripping_headers_buy_no_time() {
    let world = world(hasty()).await;
    let mut stream = world.raw().await;
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let dripping = async {
        for number in 0.. {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if stream.write_all(format!("x-{number}: y\r\n").as_bytes()).await.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(15), dripping).await.expect("headers dripped for ever");
}

#[tokio::test]
async fn many_headers_and_huge_lines_are_refused() {
    let world = world(Settings::default()).await;
    let many: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    let huge = format!("x-huge: {}\r\n", "y".repeat(200 << 10));
    for headers in [many, huge] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: x\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
        );
        let answer = exchange(world.raw().await, text.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let target = format!("POST /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(100 << 10));
    let answer = exchange(world.raw().await, target.as_bytes()).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 414") || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn bytes_that_are_no_http_are_hung_up_on() {
    let world = world(Settings::default()).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"\0\0\0\0",
        b"HELO there\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let mut stream = world.raw().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let answer = exchange(stream, b"").await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    assert_eq!(world.post(CALL).send().await.unwrap().status(), 200);
}
