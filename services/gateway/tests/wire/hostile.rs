//! Clients that mean harm to HTTP itself.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::world::{CALL, DONE, Wishes, World, exchange};

async fn world(wishes: Wishes) -> World {
    World::with(wishes, |_, mut line| async move { line.json(DONE).await }).await
}

fn hasty() -> Wishes {
    let mut wishes = Wishes::default();
    wishes.times.head = Duration::from_millis(300);
    wishes
}

#[tokio::test]
async fn a_slow_loris_is_hung_up_on() {
    let world = world(hasty()).await;
    // Silence, half a request line, half an HTTP/2 preface, headers that drip.
    for begun in ["", "POST /mc", "PRI * HTTP/2.0\r\n", "POST /mcp HTTP/1.1\r\nhost: x\r\nx-a: "] {
        let told = exchange(world.raw().await, begun.as_bytes()).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 408"), "{begun:?}: {told}");
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
async fn floods_of_headers_and_huge_lines_are_refused() {
    let world = world(Wishes::default()).await;
    let many: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    let huge = format!("x-huge: {}\r\n", "y".repeat(200 << 10));
    for headers in [many, huge] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: x\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
        );
        let told = exchange(world.raw().await, text.as_bytes()).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 431"), "{told}");
    }
    let target = format!("POST /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(100 << 10));
    let told = exchange(world.raw().await, target.as_bytes()).await;
    assert!(
        told.is_empty() || told.starts_with("HTTP/1.1 414") || told.starts_with("HTTP/1.1 431"),
        "{told}"
    );
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_request_within_a_request_is_not_smuggled() {
    let world = world(Wishes::default()).await;
    let inner = format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{CALL}",
        CALL.len()
    );
    for lengths in [
        "content-length: 4\r\ncontent-length: 5\r\n",
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "content-length: +4\r\n",
    ] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{lengths}\r\n0\r\n\r\n{inner}"
        );
        let told = exchange(world.raw().await, text.as_bytes()).await;
        assert!(!told.contains("200 OK") || lengths.contains("chunked\r\n"), "{lengths}: {told}");
    }
    assert!(world.requests().iter().all(|request| request.text() == CALL));
}

#[tokio::test]
async fn bytes_that_are_no_http_are_hung_up_on() {
    let world = world(Wishes::default()).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"\0\0\0\0",
        b"HELO there\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let mut stream = world.raw().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let told = exchange(stream, b"").await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 400"), "{told}");
    }
    assert_eq!(world.post(CALL).send().await.unwrap().status(), 200);
}
