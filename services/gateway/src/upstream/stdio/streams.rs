//! The event streams of a legacy session, as `session` needs them to answer POST and GET, with the events that are kept
//! so that a client can resume a stream with `Last-Event-ID`.
//!
//! Every message to the client is an event of one stream: that of its request, or the common one that a GET opens.
//! Events are numbered within their stream, so that `Last-Event-ID` denotes a position. A stream has one reader at a
//! time; a reader that resumes it replaces the previous one.
//!
//! If the kept events of a session exceed `KEPT_EVENTS` or `KEPT_EVENT_BYTES`, those that were read are dropped first,
//! then those of streams without a reader. Unread events of a stream with a reader are never dropped: if they are too
//! many, the child has to wait until the client reads.
//!
//! Not here: to which stream a message belongs (`routing`).

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits;

/// The number of a stream within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamNo(pub u64);

/// The common stream, which a GET opens.
pub const COMMON: StreamNo = StreamNo(0);

/// The position of an event, written `stream-number` in `id:` and `Last-Event-ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// The stream of the event.
    pub stream: StreamNo,
    /// The number of the event in its stream; 0 is the position before the first event.
    pub number: u64,
}

impl EventPosition {
    /// Parses a position; `None` if the text is not one.
    pub fn read(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: StreamNo(stream.parse().ok()?), number: number.parse().ok()? })
    }
}

impl std::fmt::Display for EventPosition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}", self.stream.0, self.number)
    }
}

/// One message on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    /// The position of the event.
    pub position: EventPosition,
    /// The message.
    pub text: Bytes,
    /// True if this is the response that ends the stream.
    pub is_last: bool,
}

/// The result of [`StreamReader::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextEvent {
    /// The next event.
    Event(StreamEvent),
    /// The stream has ended, or another reader has replaced this one.
    End,
    /// The child has ended, so that the response will never arrive.
    Broken,
}

/// Reason why a stream cannot be read from a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReadable {
    /// The stream or the event does not exist.
    Unknown,
    /// Events after this position were already dropped.
    Dropped,
    /// The stream has a reader.
    HasReader,
}

/// All streams of one session.
#[derive(Debug, Default)]
pub struct SessionStreams {
    table: Mutex<StreamTable>,
    /// Notifies readers that wait for an event, and senders that wait for room.
    changed: Notify,
}

#[derive(Debug, Default)]
struct StreamTable {
    streams: BTreeMap<StreamNo, EventQueue>,
    newest_stream: u64,
    newest_reader: u64,
    kept_bytes: usize,
    kept_events: usize,
    child_ended: bool,
    last_reader_left: Option<Instant>,
}

/// The kept events of one stream, and the number of its newest event in each state.
#[derive(Debug, Default)]
struct EventQueue {
    events: VecDeque<StreamEvent>,
    newest: u64,
    newest_read: u64,
    newest_dropped: u64,
    /// True after the last event was added.
    is_complete: bool,
    /// The number of the reader.
    reader: Option<u64>,
}

impl SessionStreams {
    /// Opens a stream for a request.
    pub fn open(&self) -> StreamNo {
        let mut table = self.table();
        table.newest_stream += 1;
        let stream = StreamNo(table.newest_stream);
        table.streams.insert(stream, EventQueue::default());
        stream
    }

    /// Removes a stream, because its answer was sent in another way, or there is none.
    pub fn remove(&self, stream: StreamNo) {
        self.table().remove(stream);
        self.changed.notify_waiters();
    }

    /// Adds a message to a stream, then waits while the readers have too much unread. If that takes longer than
    /// `STALL_TIME`, the readers with unread events are cut off.
    pub async fn send(&self, stream: StreamNo, text: Bytes, is_last: bool) {
        self.table().add(stream, text, is_last);
        self.changed.notify_waiters();
        if timeout(limits::STALL_TIME, self.until_read()).await.is_err() {
            tracing::warn!("a client does not read: its streams are cut");
            self.table().cut_off_slow_readers();
            self.changed.notify_waiters();
        }
    }

    async fn until_read(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.table().has_too_much_unread() {
                return;
            }
            changed.await;
        }
    }

    /// Records that the child has ended: no stream gets a further message.
    pub fn set_child_ended(&self) {
        self.table().child_ended = true;
        self.changed.notify_waiters();
    }

    /// Returns whether the common stream has a reader.
    pub fn has_common_reader(&self) -> bool {
        self.table().streams.get(&COMMON).is_some_and(|common| common.reader.is_some())
    }

    /// The time since the last reader left, [`Duration::MAX`] if there was none. `None` while a stream has a reader.
    pub fn time_without_reader(&self) -> Option<Duration> {
        let table = self.table();
        let is_read = table.streams.values().any(|stream| stream.reader.is_some());
        (!is_read).then(|| table.last_reader_left.map_or(Duration::MAX, |left| left.elapsed()))
    }

    /// Reads a stream from its first unread event.
    ///
    /// # Errors
    /// [`NotReadable::HasReader`] if the stream has a reader, [`NotReadable::Unknown`] if it does not exist.
    pub fn read(self: &Arc<Self>, stream: StreamNo) -> Result<StreamReader, NotReadable> {
        let mut table = self.table();
        let number = match table.streams.get(&stream) {
            Some(queue) if queue.reader.is_some() => return Err(NotReadable::HasReader),
            Some(queue) => queue.newest_read.max(queue.newest_dropped),
            None if stream == COMMON => 0,
            None => return Err(NotReadable::Unknown),
        };
        Ok(self.reader(&mut table, EventPosition { stream, number }))
    }

    /// Resumes a stream after this position. A previous reader is replaced. On the common stream, dropped events are
    /// skipped.
    ///
    /// # Errors
    /// [`NotReadable::Unknown`] if there is no such position, [`NotReadable::Dropped`] if later events were already
    /// dropped.
    pub fn resume(self: &Arc<Self>, mut from: EventPosition) -> Result<StreamReader, NotReadable> {
        let mut table = self.table();
        let queue = table.streams.get(&from.stream).ok_or(NotReadable::Unknown)?;
        if from.number > queue.newest {
            return Err(NotReadable::Unknown);
        }
        if from.number < queue.newest_dropped {
            if from.stream != COMMON {
                return Err(NotReadable::Dropped);
            }
            from.number = queue.newest_dropped;
        }
        let reader = self.reader(&mut table, from);
        drop(table);
        self.changed.notify_waiters();
        Ok(reader)
    }

    fn reader(self: &Arc<Self>, table: &mut StreamTable, position: EventPosition) -> StreamReader {
        table.newest_reader += 1;
        let number = table.newest_reader;
        let queue = table.streams.entry(position.stream).or_default();
        queue.reader = Some(number);
        queue.newest_read = position.number;
        StreamReader { streams: Arc::clone(self), position, number }
    }

    fn table(&self) -> MutexGuard<'_, StreamTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamTable {
    /// Adds an event. A message for a stream that is complete or was removed is dropped.
    fn add(&mut self, stream: StreamNo, text: Bytes, is_last: bool) {
        if self.child_ended || (stream != COMMON && !self.streams.contains_key(&stream)) {
            return;
        }
        let queue = self.streams.entry(stream).or_default();
        if queue.is_complete {
            return;
        }
        queue.newest += 1;
        queue.is_complete = is_last;
        self.kept_bytes += text.len();
        self.kept_events += 1;
        let position = EventPosition { stream, number: queue.newest };
        queue.events.push_back(StreamEvent { position, text, is_last });
        self.make_room();
    }

    fn remove(&mut self, stream: StreamNo) {
        if let Some(queue) = self.streams.remove(&stream) {
            self.kept_bytes -= queue.events.iter().map(|event| event.text.len()).sum::<usize>();
            self.kept_events -= queue.events.len();
        }
    }

    /// Removes the oldest complete streams above `KEPT_STREAMS`, and drops events above the other limits: first those
    /// that were read, oldest stream first, then those of streams without a reader.
    fn make_room(&mut self) {
        let complete = self.streams.iter().filter(|(_, queue)| queue.is_complete && queue.reader.is_none());
        let complete: Vec<StreamNo> = complete.map(|(stream, _)| *stream).collect();
        for stream in &complete[..complete.len().saturating_sub(limits::KEPT_STREAMS)] {
            self.remove(*stream);
        }
        self.drop_events(|queue, event| event.position.number <= queue.newest_read);
        self.drop_events(|queue, _| queue.reader.is_none());
    }

    /// Drops the oldest events of each stream, as long as there are too many and `may_drop` permits it.
    fn drop_events(&mut self, may_drop: impl Fn(&EventQueue, &StreamEvent) -> bool) {
        for queue in self.streams.values_mut() {
            while (self.kept_bytes > limits::KEPT_EVENT_BYTES || self.kept_events > limits::KEPT_EVENTS)
                && queue.events.front().is_some_and(|event| may_drop(queue, event))
            {
                if let Some(event) = queue.events.pop_front() {
                    queue.newest_dropped = event.position.number;
                    self.kept_bytes -= event.text.len();
                    self.kept_events -= 1;
                }
            }
        }
    }

    /// Returns whether the streams with readers have more unread events than the child may send ahead.
    fn has_too_much_unread(&self) -> bool {
        let with_reader = self.streams.values().filter(|queue| queue.reader.is_some());
        let unread = with_reader.flat_map(|queue| {
            queue.events.iter().rev().take_while(|event| event.position.number > queue.newest_read)
        });
        let (events, bytes) =
            unread.fold((0, 0), |(events, bytes), event| (events + 1, bytes + event.text.len()));
        events > limits::KEPT_EVENTS || bytes > limits::UNREAD_BYTES
    }

    /// Ends the streams of readers with unread events.
    fn cut_off_slow_readers(&mut self) {
        for queue in self.streams.values_mut().filter(|queue| queue.newest_read < queue.newest) {
            queue.reader = None;
        }
        self.make_room();
    }
}

/// The reader of one stream. Dropping it leaves the stream to the next reader.
#[derive(Debug)]
pub struct StreamReader {
    streams: Arc<SessionStreams>,
    /// The position of the last event that was read.
    position: EventPosition,
    number: u64,
}

impl StreamReader {
    /// The stream that is read.
    pub const fn stream(&self) -> StreamNo {
        self.position.stream
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> NextEvent {
        let streams = Arc::clone(&self.streams);
        loop {
            let mut changed = pin!(streams.changed.notified());
            changed.as_mut().enable();
            if let Some(next) = self.try_next() {
                if matches!(next, NextEvent::Event(_)) {
                    streams.changed.notify_waiters(); // A sender may wait for room.
                }
                return next;
            }
            changed.await;
        }
    }

    /// The next event; `None` if the reader has to wait for it.
    fn try_next(&mut self) -> Option<NextEvent> {
        let mut table = self.streams.table();
        let child_ended = table.child_ended;
        let queue = table.streams.get_mut(&self.position.stream);
        let Some(queue) = queue.filter(|queue| queue.reader == Some(self.number)) else {
            return Some(NextEvent::End);
        };
        let index = queue.events.partition_point(|event| event.position.number <= self.position.number);
        if let Some(event) = queue.events.get(index).cloned() {
            self.position = event.position;
            queue.newest_read = event.position.number;
            return Some(NextEvent::Event(event));
        }
        if queue.is_complete {
            return Some(NextEvent::End);
        }
        // The common stream awaits no response, so it cannot lose one.
        let is_common = self.position.stream == COMMON;
        child_ended.then_some(if is_common { NextEvent::End } else { NextEvent::Broken })
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        table.last_reader_left = Some(Instant::now());
        let queue = table.streams.get_mut(&self.position.stream);
        if let Some(queue) = queue.filter(|queue| queue.reader == Some(self.number)) {
            queue.reader = None;
        }
        drop(table);
        self.streams.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(next: NextEvent) -> String {
        match next {
            NextEvent::Event(event) => String::from_utf8(event.text.to_vec()).unwrap(),
            other => panic!("no event: {other:?}"),
        }
    }

    #[tokio::test]
    async fn what_was_said_while_nobody_listened_is_read_by_who_comes() {
        let streams = Arc::new(SessionStreams::default());
        streams.send(COMMON, "a".into(), false).await;
        let mut reader = streams.read(COMMON).unwrap();
        assert_eq!(event(reader.next().await), "a");
        assert_eq!(streams.read(COMMON).unwrap_err(), NotReadable::HasReader);
    }

    #[tokio::test]
    async fn a_stream_is_resumed_after_the_event_that_was_read_last() {
        let streams = Arc::new(SessionStreams::default());
        let call = streams.open();
        let mut first = streams.read(call).unwrap();
        for text in ["a", "b"] {
            streams.send(call, text.into(), false).await;
        }
        assert_eq!(event(first.next().await), "a");
        let mut second = streams.resume(EventPosition { stream: call, number: 1 }).unwrap();
        assert_eq!(first.next().await, NextEvent::End, "another one reads on");
        assert_eq!(event(second.next().await), "b");
        streams.send(call, "c".into(), true).await;
        assert_eq!(event(second.next().await), "c");
        assert_eq!(second.next().await, NextEvent::End);
    }

    #[tokio::test]
    async fn a_place_that_never_was_or_is_gone_is_not_resumed() {
        let streams = Arc::new(SessionStreams::default());
        let call = streams.open();
        let big = Bytes::from(vec![b'x'; limits::KEPT_EVENT_BYTES / 2 + 1]);
        for _ in 0..3 {
            streams.send(call, big.clone(), false).await;
        }
        assert_eq!(
            streams.resume(EventPosition { stream: call, number: 9 }).unwrap_err(),
            NotReadable::Unknown
        );
        assert_eq!(
            streams.resume(EventPosition { stream: StreamNo(7), number: 0 }).unwrap_err(),
            NotReadable::Unknown
        );
        assert_eq!(
            streams.resume(EventPosition { stream: call, number: 0 }).unwrap_err(),
            NotReadable::Dropped
        );
    }

    #[tokio::test]
    async fn a_call_whose_child_is_gone_is_broken_and_listening_just_ends() {
        let streams = Arc::new(SessionStreams::default());
        let mut call = streams.read(streams.open()).unwrap();
        let mut common = streams.read(COMMON).unwrap();
        streams.set_child_ended();
        assert_eq!(call.next().await, NextEvent::Broken);
        assert_eq!(common.next().await, NextEvent::End);
    }

    #[tokio::test]
    async fn a_child_waits_for_a_client_that_reads_slowly() {
        let streams = Arc::new(SessionStreams::default());
        let call = streams.open();
        let mut reader = streams.read(call).unwrap();
        let big = Bytes::from(vec![b'x'; limits::UNREAD_BYTES + 1]);
        let saying = tokio::spawn({
            let streams = Arc::clone(&streams);
            async move {
                streams.send(call, big, false).await;
                streams.send(call, "small".into(), false).await;
            }
        });
        assert!(matches!(reader.next().await, NextEvent::Event(_)));
        assert_eq!(event(reader.next().await), "small");
        saying.await.unwrap();
    }

    #[tokio::test]
    async fn the_time_without_a_reader_begins_when_the_last_one_leaves() {
        let streams = Arc::new(SessionStreams::default());
        assert_eq!(streams.time_without_reader(), Some(Duration::MAX));
        let reader = streams.read(COMMON).unwrap();
        assert_eq!(streams.time_without_reader(), None);
        drop(reader);
        assert!(streams.time_without_reader().is_some_and(|unread| unread < Duration::from_secs(60)));
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = EventPosition { stream: StreamNo(3), number: 14 };
        assert_eq!(EventPosition::read(&place.to_string()), Some(place));
        for text in ["", "3", "3-", "-1", "a-b", "3-4-5"] {
            assert_eq!(EventPosition::read(text), None, "{text}");
        }
    }
}
