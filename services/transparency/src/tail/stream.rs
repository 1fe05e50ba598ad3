//! The stream of one reader: its pages, its heartbeats, and its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use serving::connections::ConnectionCloser;
use store::{SignatureKind, StoreError};
use tokio::sync::mpsc;
use tokio::sync::mpsc::OwnedPermit;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::EntryTails;
use super::event;
use super::page::{EntriesUnreadable, EntryFilter, EventPage};
use super::slots::{NoStreamSlot, StreamSlot};
use crate::limits::{INDEX_POLL, TAIL_CHUNK, TAIL_CHUNKS, TAIL_FIRST_HEARTBEAT};
use crate::log::state::Log;
use crate::metrics::stream_end::StreamEnd;
use crate::quota::meter::RateBucket;

/// Opens a stream at leaf `next` for this client; [`NoStreamSlot`] if there is no slot.
pub fn open(
    tail: &Arc<EntryTails>,
    client: RateBucket,
    filter: EntryFilter,
    next: u64,
    cut: ConnectionCloser,
) -> Result<Body, NoStreamSlot> {
    let slot = tail.slots.take(client)?;
    let (chunks, taken) = mpsc::channel(TAIL_CHUNKS + 1);
    let left = CancellationToken::new();
    let reader = TailReader { tail: tail.clone(), filter, next };
    let out = EventChannel { chunks, patience: tail.limits.patience, last_sent: Instant::now() };
    tail.tasks.spawn(reader.run(out, left.clone(), cut));
    tail.metrics.streams.open.inc();
    let open = OpenStreamGuard { _left: left.drop_guard(), _place: slot, tail: tail.clone() };
    Ok(Body::new(StreamBody { taken, _open: open }))
}

/// The response body: receives the chunks of a stream.
struct StreamBody {
    taken: mpsc::Receiver<Bytes>,
    _open: OpenStreamGuard,
}

/// Guard of an open stream: ends it when the connection drops the body.
struct OpenStreamGuard {
    _left: DropGuard,
    _place: StreamSlot,
    tail: Arc<EntryTails>,
}

impl Drop for OpenStreamGuard {
    fn drop(&mut self) {
        self.tail.metrics.streams.open.dec();
    }
}

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = ready!(self.taken.poll_recv(context));
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// The sentence in the last event.
fn detail(end: StreamEnd) -> &'static str {
    match end {
        StreamEnd::Left => "the reader has left",
        StreamEnd::TooSlow => "events were not read in time; continue with Last-Event-ID, nothing is lost",
        StreamEnd::Stopping => "the service stops; continue with Last-Event-ID in a moment",
        StreamEnd::Unavailable => "the log cannot be read at the moment; continue with Last-Event-ID",
    }
}

impl From<EntriesUnreadable> for StreamEnd {
    fn from(_: EntriesUnreadable) -> Self {
        Self::Unavailable
    }
}

/// The channel to the reader: a few chunks, and one slot reserved for the last event.
struct EventChannel {
    chunks: mpsc::Sender<Bytes>,
    patience: Duration,
    /// Time of the last chunk sent.
    last_sent: Instant,
}

impl EventChannel {
    async fn send(&mut self, text: String) -> Result<(), StreamEnd> {
        match timeout(self.patience, self.chunks.send(text.into())).await {
            Ok(Ok(())) => {
                self.last_sent = Instant::now();
                Ok(())
            }
            Ok(Err(_)) => Err(StreamEnd::Left),
            Err(_) => Err(StreamEnd::TooSlow),
        }
    }
}

struct TailReader {
    tail: Arc<EntryTails>,
    filter: EntryFilter,
    /// The next leaf to read.
    next: u64,
}

impl TailReader {
    async fn run(mut self, mut out: EventChannel, left: CancellationToken, cut: ConnectionCloser) {
        let Ok(last_word) = out.chunks.clone().reserve_owned().await else { return };
        let closing = self.tail.closing.clone();
        let end = tokio::select! {
            () = closing.cancelled() => StreamEnd::Stopping,
            () = left.cancelled() => StreamEnd::Left,
            end = self.send_events(&mut out) => end,
        };
        self.tail.metrics.streams.ended(end);
        drop(out);
        self.finish(end, last_word, &left, &cut).await;
    }

    /// Sends the reason for the end. If a slow reader does not take even that in time, its connection is closed.
    async fn finish(
        &self,
        end: StreamEnd,
        last_word: OwnedPermit<Bytes>,
        left: &CancellationToken,
        cut: &ConnectionCloser,
    ) {
        if end == StreamEnd::Left {
            return;
        }
        tracing::debug!(reason = end.reason(), next = self.next, "a stream of entries ends");
        drop(last_word.send(event::end(end.reason(), detail(end)).into()));
        if end == StreamEnd::TooSlow && timeout(self.tail.limits.grace, left.cancelled()).await.is_err() {
            cut.0.cancel();
        }
    }

    async fn send_events(&mut self, out: &mut EventChannel) -> StreamEnd {
        match self.send_until_end(out).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn send_until_end(&mut self, out: &mut EventChannel) -> Result<Infallible, StreamEnd> {
        let mut status = self.tail.log.sequencer.status();
        let most = self.tail.limits.heartbeat;
        // Over HTTP/1 a disconnected reader is only noticed by a failed send, and most readers that leave do so early,
        // so the first heartbeats are frequent.
        let mut heartbeat = TAIL_FIRST_HEARTBEAT.min(most);
        out.send(event::opening(self.next)).await?;
        loop {
            status.borrow_and_update();
            let signed = signed_size(&self.tail.log).await.map_err(|_| StreamEnd::Unavailable)?;
            self.send_up_to(signed, out).await?;
            let mut silence = heartbeat.saturating_sub(out.last_sent.elapsed());
            if self.next < signed {
                // The lookup index lags behind, and sends no notification when it has caught up.
                silence = silence.min(INDEX_POLL);
            }
            if let Ok(changed) = timeout(silence, status.changed()).await {
                changed.map_err(|_| StreamEnd::Stopping)?;
            }
            if out.last_sent.elapsed() >= heartbeat {
                out.send(event::heartbeat(self.next)).await?;
                heartbeat = (heartbeat * 2).min(most);
            }
        }
    }

    async fn send_up_to(&mut self, signed: u64, out: &mut EventChannel) -> Result<(), StreamEnd> {
        while self.next < signed {
            let page = self.tail.pages.page(&self.tail, &self.filter, self.next, signed).await?;
            if page.next <= self.next {
                break;
            }
            self.send_page(&page, out).await?;
        }
        Ok(())
    }

    async fn send_page(&mut self, page: &EventPage, out: &mut EventChannel) -> Result<(), StreamEnd> {
        let mut chunk = String::new();
        // A shared page may begin before this reader's position.
        let from = self.next;
        for (_, event) in page.events.iter().filter(|(leaf, _)| *leaf >= from) {
            chunk.push_str(event);
            if chunk.len() >= TAIL_CHUNK {
                out.send(std::mem::take(&mut chunk)).await?;
            }
        }
        if !chunk.is_empty() {
            out.send(chunk).await?;
        }
        self.next = page.next;
        Ok(())
    }
}

/// The size of the newest signed tree.
pub async fn signed_size(log: &Log) -> Result<u64, StoreError> {
    if let Some(published) = log.sequencer.published() {
        return Ok(published.head.size.get());
    }
    let signed = log.store.newest_signed(SignatureKind::Checkpoint).await?;
    Ok(signed.map_or(0, |signed| signed.head.size.get()))
}
