//! A graceful stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::world::{CALL, DONE, Notes, Reading, Wishes, World, exchange};

#[tokio::test]
async fn requests_in_flight_finish_and_endless_streams_end() {
    let (stopping, server_saw) = (Arc::new(Notify::new()), Notes::default());
    let (goes_on, saw) = (stopping.clone(), server_saw.clone());
    let mut world = World::with(Wishes::default(), move |request, mut line| {
        let (goes_on, saw) = (goes_on.clone(), saw.clone());
        async move {
            line.begin("").await;
            line.send(": begun\n\n").await;
            saw.write(request.method());
            if request.method() == "GET" {
                return line.hung_up().await;
            }
            goes_on.notified().await;
            line.send(&format!("data: {DONE}\n\n")).await;
            line.end().await;
        }
    })
    .await;
    let mut listening = Reading::of(world.http.get(world.url()).header("mcp-session-id", "s-1")).await;
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
async fn what_does_not_finish_is_cut() {
    let mut wishes = Wishes::default();
    wishes.times.drain = Duration::from_millis(200);
    let mut world = World::with(wishes, |_, mut line| async move {
        line.begin("").await;
        line.send(": begun\n\n").await;
        line.hung_up().await;
    })
    .await;
    let mut calling = Reading::of(world.post(CALL)).await;
    calling.until("begun").await;
    world.serving.take().unwrap().drain().await;
}

#[tokio::test]
async fn idle_and_silent_connections_do_not_hold_up_a_stop() {
    let mut world = World::with(Wishes::default(), |_, mut line| async move { line.json(DONE).await }).await;
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
