//! The stream of one reader: its pages, its heartbeats, and its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use store::{SignatureKind, StoreError};
use tokio::sync::mpsc;
use tokio::sync::mpsc::OwnedPermit;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::event;
use super::page::{Page, Unreadable, Wanted};
use super::places::{NoPlace, Place};
use crate::app::App;
use crate::doors::Bucket;
use crate::limits::{INDEX_POLL, TAIL_CHUNK, TAIL_CHUNKS, TAIL_FIRST_HEARTBEAT};

/// Closes the connection of a request, for a reader that does not even take the last event.
#[derive(Clone, Default)]
pub struct Cut(pub CancellationToken);

/// Opens a stream at leaf `next` for this client; [`NoPlace`] if there is no slot.
pub fn open(app: &App, client: Bucket, wanted: Wanted, next: u64, cut: Cut) -> Result<Body, NoPlace> {
    let place = app.tail.places.take(client)?;
    let (chunks, taken) = mpsc::channel(TAIL_CHUNKS + 1);
    let left = CancellationToken::new();
    let reader = Reader { app: app.clone(), wanted, next };
    let out = Out { chunks, patience: app.tail.limits.patience, said: Instant::now() };
    app.tail.tasks.spawn(reader.run(out, left.clone(), cut));
    app.tail.metrics.entry_streams.inc();
    let open = Open { _left: left.drop_guard(), _place: place, app: app.clone() };
    Ok(Body::new(Taking { taken, _open: open }))
}

/// The response body: receives the chunks of a stream.
struct Taking {
    taken: mpsc::Receiver<Bytes>,
    _open: Open,
}

/// Guard of an open stream: ends it when the connection drops the body.
struct Open {
    _left: DropGuard,
    _place: Place,
    app: App,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.tail.metrics.entry_streams.dec();
    }
}

impl hyper::body::Body for Taking {
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

/// The reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The reader disconnected.
    Left,
    /// The reader took nothing for [`TailLimits::patience`](crate::limits::TailLimits).
    TooSlow,
    /// The service stops ([`Tail::close`](super::Tail::close)).
    Stopping,
    /// The store could not be read.
    Unavailable,
}

impl End {
    const ALL: [End; 4] = [End::Left, End::TooSlow, End::Stopping, End::Unavailable];

    /// The name of the reason, in the last event and in metrics.
    fn reason(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::TooSlow => "too-slow",
            Self::Stopping => "stopping",
            Self::Unavailable => "unavailable",
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::Left => "the reader has left",
            Self::TooSlow => "events were not taken in time; go on with Last-Event-ID, nothing is lost",
            Self::Stopping => "the service stops; go on with Last-Event-ID in a moment",
            Self::Unavailable => "the log cannot be read at the moment; go on with Last-Event-ID",
        }
    }
}

/// The names of all reasons.
pub fn reasons() -> [&'static str; 4] {
    End::ALL.map(End::reason)
}

impl From<Unreadable> for End {
    fn from(_: Unreadable) -> Self {
        Self::Unavailable
    }
}

/// The channel to the reader: a few chunks, and one slot reserved for the last event.
struct Out {
    chunks: mpsc::Sender<Bytes>,
    patience: Duration,
    /// Time of the last chunk sent.
    said: Instant,
}

impl Out {
    async fn send(&mut self, text: String) -> Result<(), End> {
        match timeout(self.patience, self.chunks.send(text.into())).await {
            Ok(Ok(())) => {
                self.said = Instant::now();
                Ok(())
            }
            Ok(Err(_)) => Err(End::Left),
            Err(_) => Err(End::TooSlow),
        }
    }
}

struct Reader {
    app: App,
    wanted: Wanted,
    /// The next leaf to read.
    next: u64,
}

impl Reader {
    async fn run(mut self, mut out: Out, left: CancellationToken, cut: Cut) {
        let Ok(last_word) = out.chunks.clone().reserve_owned().await else { return };
        let closing = self.app.tail.closing.clone();
        let end = tokio::select! {
            () = closing.cancelled() => End::Stopping,
            () = left.cancelled() => End::Left,
            end = self.tell(&mut out) => end,
        };
        self.app.tail.metrics.entry_stream_ended(end.reason());
        drop(out);
        self.finish(end, last_word, &left, &cut).await;
    }

    /// Sends the reason for the end. If a slow reader does not take even that in time, its connection is closed.
    async fn finish(&self, end: End, last_word: OwnedPermit<Bytes>, left: &CancellationToken, cut: &Cut) {
        if end == End::Left {
            return;
        }
        tracing::debug!(reason = end.reason(), next = self.next, "a stream of entries ends");
        drop(last_word.send(event::end(end.reason(), end.detail()).into()));
        if end == End::TooSlow && timeout(self.app.tail.limits.grace, left.cancelled()).await.is_err() {
            cut.0.cancel();
        }
    }

    async fn tell(&mut self, out: &mut Out) -> End {
        match self.tell_on(out).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn tell_on(&mut self, out: &mut Out) -> Result<Infallible, End> {
        let mut status = self.app.log.sequencer.status();
        let most = self.app.tail.limits.heartbeat;
        // Over HTTP/1 a disconnected reader is only noticed by a failed send, and most readers that leave do so early,
        // so the first heartbeats are frequent.
        let mut heartbeat = TAIL_FIRST_HEARTBEAT.min(most);
        out.send(event::opening(self.next)).await?;
        loop {
            status.borrow_and_update();
            let signed = signed_size(&self.app).await.map_err(|_| End::Unavailable)?;
            self.tell_up_to(signed, out).await?;
            let mut silence = heartbeat.saturating_sub(out.said.elapsed());
            if self.next < signed {
                // The lookup index lags behind, and sends no notification when it has caught up.
                silence = silence.min(INDEX_POLL);
            }
            if let Ok(changed) = timeout(silence, status.changed()).await {
                changed.map_err(|_| End::Stopping)?;
            }
            if out.said.elapsed() >= heartbeat {
                out.send(event::heartbeat(self.next)).await?;
                heartbeat = (heartbeat * 2).min(most);
            }
        }
    }

    async fn tell_up_to(&mut self, signed: u64, out: &mut Out) -> Result<(), End> {
        while self.next < signed {
            let page = self.app.tail.pages.page(&self.app, &self.wanted, self.next, signed).await?;
            if page.next <= self.next {
                break;
            }
            self.tell_page(&page, out).await?;
        }
        Ok(())
    }

    async fn tell_page(&mut self, page: &Page, out: &mut Out) -> Result<(), End> {
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
pub async fn signed_size(app: &App) -> Result<u64, StoreError> {
    if let Some(published) = app.log.sequencer.published() {
        return Ok(published.head.size.get());
    }
    let signed = app.log.store.newest_signed(SignatureKind::Checkpoint).await?;
    Ok(signed.map_or(0, |signed| signed.head.size.get()))
}
