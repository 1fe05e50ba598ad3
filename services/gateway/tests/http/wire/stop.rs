//! A graceful stop.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use tokio::sync::Notify;

use crate::client::Reading;
use crate::front::{CALL, DONE, Notes, PassThrough, Settings, exchange};

#[tokio::test]
async fn requests_in_flight_finish_and_endless_streams_end() {
    let (stopping, server_saw) = (Arc::new(Notify::new()), Notes::default());
    let (goes_on, saw) = (stopping.clone(), server_saw.clone());
    let mut world = PassThrough::before(move |seen, wire| {
        wire.stream_with("");
        wire.bytes(": begun\n\n");
        saw.write(seen.method());
        if seen.method() == "GET" {
            wire.is_hung_up_on();
        } else {
            block_on(goes_on.notified());
            wire.bytes(&format!("data: {DONE}\n\n"));
        }
    })
    .await;
    let mut listening = Reading::of(world.listen()).await;
    listening.until("begun").await;
    let mut calling = Reading::of(world.post(CALL)).await;
    calling.until("begun").await;
    let stopped = tokio::spawn(world.serving.take().unwrap().drain());
    assert_eq!(listening.ended().await, ": begun\n\n");
    assert!(!stopped.is_finished(), "a call was cut");
    stopping.notify_one();
    calling.until(DONE).await;
    calling.ended().await;
    stopped.await.unwrap();
    assert!(tokio::net::TcpStream::connect(world.at).await.is_err());
}

#[tokio::test]
async fn a_call_that_outlasts_the_drain_time_is_cut() {
    let mut settings = Settings::default();
    settings.times.drain = Duration::from_millis(200);
    let mut world = PassThrough::set(settings, |_, wire| {
        wire.stream_with("");
        wire.bytes(": begun\n\n");
        wire.is_hung_up_on();
    })
    .await;
    let mut calling = Reading::of(world.post(CALL)).await;
    calling.until("begun").await;
    world.serving.take().unwrap().drain().await;
}

#[tokio::test]
async fn a_stop_closes_idle_connections() {
    let mut world = PassThrough::before(|_, wire| wire.json(DONE)).await;
    let silent = world.raw().await;
    let keeps = reqwest::Client::builder().no_proxy().build().unwrap();
    keeps
        .post(world.url())
        .header("content-type", "application/json")
        .body(CALL)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    world.serving.take().unwrap().drain().await;
    assert_eq!(exchange(silent, b"").await, "");
}
