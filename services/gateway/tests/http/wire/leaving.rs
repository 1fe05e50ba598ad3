//! Clients that go away: in the modern era that cancels, in the legacy era it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::executor::block_on;
use tokio::sync::Notify;

use crate::client::Reading;
use crate::front::{CALL, DONE, Notes, PassThrough, modern_text, until};

#[tokio::test]
async fn a_legacy_call_is_read_to_its_end_without_its_client() {
    for streams in [true, false] {
        let (left, server_saw) = (Arc::new(Notify::new()), Notes::default());
        let (goes_on, saw) = (left.clone(), server_saw.clone());
        let world = PassThrough::before(move |_, wire| {
            if streams {
                wire.stream_with("");
                wire.bytes(": begun\n\n");
            }
            saw.write("begun");
            block_on(goes_on.notified());
            if streams {
                wire.bytes(&format!("data: {DONE}\n\n"));
            } else {
                wire.json(DONE);
            }
        })
        .await;
        let (http, call) = (world.http.clone(), world.post(CALL).build().unwrap());
        let client = tokio::spawn(async move {
            let mut response = http.execute(call).await.unwrap();
            while response.chunk().await.unwrap().is_some() {}
        });
        server_saw.holds("begun").await;
        client.abort();
        let _ = client.await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        left.notify_one();
        world.notes.holds(&format!("message {DONE}")).await;
        world.notes.holds("over Complete").await;
    }
}

#[tokio::test]
async fn a_modern_call_is_cancelled_by_its_clients_going_away() {
    for streams in [true, false] {
        let server_saw = Notes::default();
        let saw = server_saw.clone();
        let world = PassThrough::before(move |_, wire| {
            if streams {
                wire.stream_with("");
                wire.bytes(": begun\n\n");
            }
            saw.write("begun");
            wire.is_hung_up_on();
            saw.write("hung up");
        })
        .await;
        let body = modern_text("1", "tools/call", r#""name":"t""#);
        let (http, call) = (world.http.clone(), world.modern("tools/call", Some("t"), body).build().unwrap());
        let client_saw = Notes::default();
        let saw = client_saw.clone();
        let client = tokio::spawn(async move {
            let mut response = http.execute(call).await.unwrap();
            while response.chunk().await.unwrap().is_some() {
                saw.write("begun");
            }
        });
        server_saw.holds("begun").await;
        if streams {
            client_saw.holds("begun").await;
        }
        client.abort();
        let _ = client.await;
        server_saw.holds("hung up").await;
        world.notes.holds(if streams { "over Abandoned" } else { "cancelled" }).await;
    }
}

#[tokio::test]
async fn a_get_stream_ends_at_the_server_when_the_client_leaves() {
    let server_saw = Notes::default();
    let saw = server_saw.clone();
    let world = PassThrough::before(move |_, wire| {
        wire.stream_with("");
        wire.bytes(": hi\n\n");
        wire.is_hung_up_on();
        saw.write("hung up");
    })
    .await;
    let mut reading = Reading::of(world.listen()).await;
    reading.until(": hi").await;
    drop(reading);
    server_saw.holds("hung up").await;
}

#[tokio::test]
async fn a_client_that_resumes_gets_its_stream_back_from_whoever_read_on() {
    let (taken, server_saw) = (Arc::new(AtomicUsize::new(0)), Notes::default());
    let (open, saw) = (taken.clone(), server_saw.clone());
    // A server that answers 409 to a GET as long as it believes the stream to be read.
    let world = PassThrough::before(move |seen, wire| {
        if seen.method() == "GET" {
            if open.load(Ordering::SeqCst) > 0 {
                return wire.answer(409, &[], b"");
            }
            wire.stream_with("");
            return wire.bytes(&format!("id: 2\ndata: {DONE}\n\n"));
        }
        open.fetch_add(1, Ordering::SeqCst);
        wire.stream_with("");
        wire.bytes("id: 1\ndata: \n\n");
        wire.is_hung_up_on();
        open.fetch_sub(1, Ordering::SeqCst);
        saw.write("let go");
    })
    .await;
    let mut reading = Reading::of(world.post(CALL)).await;
    reading.until("id: 1\n").await;
    drop(reading);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(taken.load(Ordering::SeqCst), 1, "the call was dropped with its client");
    let resumed = world.listen().header("last-event-id", "1");
    let mut resumed = Reading::of(resumed).await;
    assert_eq!(resumed.status(), 200);
    resumed.until(DONE).await;
    world.notes.holds("over Resumed").await;
    world.notes.holds(&format!("late {DONE}")).await;
    until("the server was let go", || server_saw.all().len() == 1).await;
}
