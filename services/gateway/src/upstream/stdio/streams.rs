//! The event streams of a legacy session: their events, their readers, and the events that are kept for resumption.
//!
//! Every message to the client is an event of one stream: that of its request, or the common one that a GET opens.
//! Events are numbered within their stream, so that `Last-Event-ID` denotes a position. A stream has one reader at a
//! time; a reader that resumes it replaces the previous one. Events that were read are kept while there is room; unread
//! events are kept as long as a reader may come. If a client reads slowly, its child has to wait.

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
    pub place: EventPosition,
    /// The message.
    pub text: Bytes,
    /// True if this is the response that ends the stream.
    pub last: bool,
}

/// The result of [`StreamReader::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextEvent {
    /// The next event.
    Event(StreamEvent),
    /// The stream has ended, or another reader has taken over.
    End,
    /// The child has ended, so that the response will never arrive.
    Broken,
}

/// Reason why a stream cannot be read from a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReader {
    /// The stream or the event does not exist.
    Unknown,
    /// Events after this position were already dropped.
    NotKept,
    /// The stream has a reader.
    Taken,
}

/// All streams of one session.
#[derive(Debug, Default)]
pub struct SessionStreams {
    inner: Mutex<StreamTable>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct StreamTable {
    streams: BTreeMap<StreamNo, EventQueue>,
    next: u64,
    readers: u64,
    kept_bytes: usize,
    kept_events: usize,
    broken: bool,
    /// The time at which the last reader left.
    left: Option<Instant>,
}

#[derive(Debug, Default)]
struct EventQueue {
    events: VecDeque<StreamEvent>,
    /// The number of the newest event.
    newest: u64,
    /// The number of the newest event that was read.
    read: u64,
    /// The number of the newest event that was dropped.
    dropped: u64,
    over: bool,
    reader: Option<u64>,
}

impl SessionStreams {
    /// Opens a stream for a request.
    pub fn open(&self) -> StreamNo {
        let mut inner = self.lock();
        inner.next += 1;
        let stream = StreamNo(inner.next);
        inner.streams.insert(stream, EventQueue::default());
        stream
    }

    /// Removes a stream, because its answer was sent in another way, or there is none.
    pub fn forget(&self, stream: StreamNo) {
        let mut inner = self.lock();
        if let Some(gone) = inner.streams.remove(&stream) {
            inner.kept_bytes -= gone.events.iter().map(|event| event.text.len()).sum::<usize>();
            inner.kept_events -= gone.events.len();
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Adds a message to a stream, then waits while the readers have too much unread. Readers that stall longer than
    /// `STALL_TIME` are cut off.
    pub async fn say(&self, stream: StreamNo, text: Bytes, last: bool) {
        self.lock().add(stream, text, last);
        self.changed.notify_waiters();
        if timeout(limits::STALL_TIME, self.until_read()).await.is_err() {
            tracing::warn!("a client does not read: its streams are cut");
            self.lock().cut();
            self.changed.notify_waiters();
        }
    }

    async fn until_read(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.lock().is_too_much_unread() {
                return;
            }
            changed.await;
        }
    }

    /// Marks all streams as broken: no further message will come.
    pub fn break_off(&self) {
        self.lock().broken = true;
        self.changed.notify_waiters();
    }

    /// Returns whether the common stream has a reader.
    pub fn somebody_listens(&self) -> bool {
        self.lock().streams.get(&COMMON).is_some_and(|common| common.reader.is_some())
    }

    /// The time since a stream was read, [`Duration::MAX`] if none was. `None` while one has a reader.
    pub fn unread_for(&self) -> Option<Duration> {
        let inner = self.lock();
        let is_read = inner.streams.values().any(|stream| stream.reader.is_some());
        (!is_read).then(|| inner.left.map_or(Duration::MAX, |left| left.elapsed()))
    }

    /// Reads a stream from its first unread event.
    ///
    /// # Errors
    /// [`NoReader::Taken`] if the stream has a reader, [`NoReader::Unknown`] if it does not exist.
    pub fn read(self: &Arc<Self>, stream: StreamNo) -> Result<StreamReader, NoReader> {
        let mut inner = self.lock();
        let from = match inner.streams.get(&stream) {
            Some(taken) if taken.reader.is_some() => return Err(NoReader::Taken),
            Some(open) => open.read.max(open.dropped),
            None if stream == COMMON => 0,
            None => return Err(NoReader::Unknown),
        };
        Ok(self.reader(&mut inner, EventPosition { stream, number: from }))
    }

    /// Resumes a stream after this position. A previous reader is replaced. On the common stream, dropped events are
    /// skipped.
    ///
    /// # Errors
    /// [`NoReader::Unknown`] if there is no such position, [`NoReader::NotKept`] if later events were already dropped.
    pub fn resume(self: &Arc<Self>, mut from: EventPosition) -> Result<StreamReader, NoReader> {
        let mut inner = self.lock();
        let stream = inner.streams.get(&from.stream).ok_or(NoReader::Unknown)?;
        if from.number > stream.newest {
            return Err(NoReader::Unknown);
        }
        if from.number < stream.dropped {
            if from.stream != COMMON {
                return Err(NoReader::NotKept);
            }
            from.number = stream.dropped;
        }
        let reader = self.reader(&mut inner, from);
        drop(inner);
        self.changed.notify_waiters();
        Ok(reader)
    }

    fn reader(self: &Arc<Self>, inner: &mut StreamTable, at: EventPosition) -> StreamReader {
        inner.readers += 1;
        let number = inner.readers;
        let stream = inner.streams.entry(at.stream).or_default();
        stream.reader = Some(number);
        stream.read = at.number;
        StreamReader { streams: Arc::clone(self), at, number }
    }

    fn lock(&self) -> MutexGuard<'_, StreamTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamTable {
    fn add(&mut self, stream: StreamNo, text: Bytes, last: bool) {
        if self.broken || (stream != COMMON && !self.streams.contains_key(&stream)) {
            return;
        }
        let open = self.streams.entry(stream).or_default();
        if open.over {
            return;
        }
        open.newest += 1;
        open.over = last;
        self.kept_bytes += text.len();
        self.kept_events += 1;
        open.events.push_back(StreamEvent {
            place: EventPosition { stream, number: open.newest },
            text,
            last,
        });
        self.make_room();
    }

    /// Drops events above the limits: first those that were read, oldest stream first, then those of streams without a
    /// reader.
    fn make_room(&mut self) {
        let over: Vec<StreamNo> = self.finished().collect();
        for stream in &over[..over.len().saturating_sub(limits::KEPT_STREAMS)] {
            if let Some(gone) = self.streams.remove(stream) {
                self.kept_bytes -= gone.events.iter().map(|event| event.text.len()).sum::<usize>();
                self.kept_events -= gone.events.len();
            }
        }
        self.drop_events(|stream, event| event.place.number <= stream.read);
        self.drop_events(|stream, _| stream.reader.is_none());
    }

    fn finished(&self) -> impl Iterator<Item = StreamNo> + '_ {
        self.streams
            .iter()
            .filter(|(_, stream)| stream.over && stream.reader.is_none())
            .map(|(stream, _)| *stream)
    }

    fn drop_events(&mut self, may_go: impl Fn(&EventQueue, &StreamEvent) -> bool) {
        for stream in self.streams.values_mut() {
            while (self.kept_bytes > limits::KEPT_EVENT_BYTES || self.kept_events > limits::KEPT_EVENTS)
                && stream.events.front().is_some_and(|event| may_go(stream, event))
            {
                if let Some(event) = stream.events.pop_front() {
                    stream.dropped = event.place.number;
                    self.kept_bytes -= event.text.len();
                    self.kept_events -= 1;
                }
            }
        }
    }

    fn is_too_much_unread(&self) -> bool {
        let read_by_somebody = self.streams.values().filter(|stream| stream.reader.is_some());
        let unread = read_by_somebody.flat_map(|stream| {
            stream.events.iter().rev().take_while(|event| event.place.number > stream.read)
        });
        let (events, bytes) =
            unread.fold((0, 0), |(events, bytes), event| (events + 1, bytes + event.text.len()));
        events > limits::KEPT_EVENTS || bytes > limits::UNREAD_BYTES
    }

    /// Ends the streams of readers with unread events.
    fn cut(&mut self) {
        for stream in self.streams.values_mut().filter(|stream| stream.read < stream.newest) {
            stream.reader = None;
        }
        self.make_room();
    }
}

/// The reader of one stream.
#[derive(Debug)]
pub struct StreamReader {
    streams: Arc<SessionStreams>,
    at: EventPosition,
    number: u64,
}

impl StreamReader {
    /// The position of the last event that was read.
    pub const fn place(&self) -> EventPosition {
        self.at
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> NextEvent {
        let streams = Arc::clone(&self.streams);
        loop {
            let mut changed = pin!(streams.changed.notified());
            changed.as_mut().enable();
            if let Some(next) = self.try_next() {
                if matches!(next, NextEvent::Event(_)) {
                    streams.changed.notify_waiters(); // Somebody may wait for room.
                }
                return next;
            }
            changed.await;
        }
    }

    fn try_next(&mut self) -> Option<NextEvent> {
        let mut inner = self.streams.lock();
        let broken = inner.broken;
        let Some(stream) = inner.streams.get_mut(&self.at.stream) else { return Some(NextEvent::End) };
        if stream.reader != Some(self.number) {
            return Some(NextEvent::End);
        }
        let index = stream.events.partition_point(|event| event.place.number <= self.at.number);
        if let Some(event) = stream.events.get(index).cloned() {
            self.at = event.place;
            stream.read = event.place.number;
            return Some(NextEvent::Event(event));
        }
        if stream.over {
            return Some(NextEvent::End);
        }
        let nothing_lost = self.at.stream == COMMON;
        broken.then_some(if nothing_lost { NextEvent::End } else { NextEvent::Broken })
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut inner = self.streams.lock();
        inner.left = Some(Instant::now());
        let stream = inner.streams.get_mut(&self.at.stream);
        if let Some(stream) = stream.filter(|stream| stream.reader == Some(self.number)) {
            stream.reader = None;
        }
        drop(inner);
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
        streams.say(COMMON, "a".into(), false).await;
        let mut reader = streams.read(COMMON).unwrap();
        assert_eq!(event(reader.next().await), "a");
        assert_eq!(streams.read(COMMON).unwrap_err(), NoReader::Taken);
    }

    #[tokio::test]
    async fn a_stream_is_resumed_after_the_event_that_was_read_last() {
        let streams = Arc::new(SessionStreams::default());
        let call = streams.open();
        let mut first = streams.read(call).unwrap();
        for text in ["a", "b"] {
            streams.say(call, text.into(), false).await;
        }
        assert_eq!(event(first.next().await), "a");
        let mut second = streams.resume(EventPosition { stream: call, number: 1 }).unwrap();
        assert_eq!(first.next().await, NextEvent::End, "another one reads on");
        assert_eq!(event(second.next().await), "b");
        streams.say(call, "c".into(), true).await;
        assert_eq!(event(second.next().await), "c");
        assert_eq!(second.next().await, NextEvent::End);
    }

    #[tokio::test]
    async fn a_place_that_never_was_or_is_gone_is_not_resumed() {
        let streams = Arc::new(SessionStreams::default());
        let call = streams.open();
        let big = Bytes::from(vec![b'x'; limits::KEPT_EVENT_BYTES / 2 + 1]);
        for _ in 0..3 {
            streams.say(call, big.clone(), false).await;
        }
        assert_eq!(streams.resume(EventPosition { stream: call, number: 9 }).unwrap_err(), NoReader::Unknown);
        assert_eq!(
            streams.resume(EventPosition { stream: StreamNo(7), number: 0 }).unwrap_err(),
            NoReader::Unknown
        );
        assert_eq!(streams.resume(EventPosition { stream: call, number: 0 }).unwrap_err(), NoReader::NotKept);
    }

    #[tokio::test]
    async fn a_call_whose_child_is_gone_is_broken_and_listening_just_ends() {
        let streams = Arc::new(SessionStreams::default());
        let mut call = streams.read(streams.open()).unwrap();
        let mut common = streams.read(COMMON).unwrap();
        streams.break_off();
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
                streams.say(call, big, false).await;
                streams.say(call, "small".into(), false).await;
            }
        });
        assert!(matches!(reader.next().await, NextEvent::Event(_)));
        assert_eq!(event(reader.next().await), "small");
        saying.await.unwrap();
    }

    #[tokio::test]
    async fn the_time_without_a_reader_begins_when_the_last_one_leaves() {
        let streams = Arc::new(SessionStreams::default());
        assert_eq!(streams.unread_for(), Some(Duration::MAX));
        let reader = streams.read(COMMON).unwrap();
        assert_eq!(streams.unread_for(), None);
        drop(reader);
        assert!(streams.unread_for().is_some_and(|unread| unread < Duration::from_secs(60)));
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
