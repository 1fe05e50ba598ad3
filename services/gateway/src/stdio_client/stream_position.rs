//! The position up to which a stream was read, and the pause before it is asked for again.

use std::time::Duration;

use http::{HeaderValue, StatusCode};

use crate::limits::{LOCAL_STREAM_LONGEST_PAUSE, LOCAL_STREAM_PAUSE, RESUME_PAUSE};
use crate::upstream::events::Event;

/// The position in a stream.
#[derive(Debug, Default)]
pub struct StreamPosition {
    last_event: Option<HeaderValue>,
    /// The newest pause that the server has named.
    retry: Option<Duration>,
    /// Number of requests for the stream that the server has refused since the last one that it answered.
    refusals: u32,
}

impl StreamPosition {
    /// Returns the id of the last event, as the value of `Last-Event-ID`; `None` if the events have no ids.
    pub const fn last_event(&self) -> Option<&HeaderValue> {
        self.last_event.as_ref()
    }

    /// Takes the id and the pause of an event.
    pub fn advance(&mut self, event: &Event) {
        if let Some(Ok(id)) = event.id().map(HeaderValue::from_bytes) {
            // An empty id takes back the one before it.
            self.last_event = Some(id).filter(|id| !id.is_empty());
        }
        self.retry = event.retry().or(self.retry);
    }

    /// Notes that the server has opened the stream.
    pub fn opened(&mut self) {
        self.refusals = 0;
    }

    /// Notes that the server has refused the stream. Unless the refusal is temporary, it may not know the last event.
    pub fn refused(&mut self, status: StatusCode) {
        self.refusals = self.refusals.saturating_add(1);
        if !is_temporary(status) {
            self.last_event = None;
        }
    }

    /// Returns the pause before the stream is asked for again: the one that the server has named, or [`LOCAL_STREAM_PAUSE`].
    /// After refusals it doubles with each, up to [`LOCAL_STREAM_LONGEST_PAUSE`], or to the server's if that is longer.
    pub fn pause(&self) -> Duration {
        let named = self.retry.unwrap_or(LOCAL_STREAM_PAUSE).max(RESUME_PAUSE);
        if self.refusals == 0 {
            return named;
        }
        let grown = LOCAL_STREAM_PAUSE.saturating_mul(2_u32.saturating_pow(self.refusals));
        named.max(grown.min(LOCAL_STREAM_LONGEST_PAUSE))
    }
}

/// Returns whether a later request for a stream may succeed that was answered with this status: the server cannot be
/// reached or is busy, or still counts the stream as read.
pub fn is_temporary(status: StatusCode) -> bool {
    match status {
        StatusCode::NOT_IMPLEMENTED => false,
        StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => true,
        _ => status.is_server_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::events::Splitter;

    fn after(events: &'static str) -> StreamPosition {
        let mut position = StreamPosition::default();
        for event in Splitter::default().push(events.into()).unwrap() {
            position.advance(&event);
        }
        position
    }

    #[test]
    fn the_last_id_is_that_of_the_position_also_without_data_until_an_empty_one_takes_it_back() {
        let last = |events| after(events).last_event().map(|id| id.to_str().unwrap().to_owned());
        assert_eq!(last("data: 1\n\n"), None);
        assert_eq!(last("id: a\ndata: \n\ndata: 1\n\n: alive\n\n").as_deref(), Some("a"));
        assert_eq!(last("id: a\n\nid:b\n\n").as_deref(), Some("b"));
        assert_eq!(last("id: a\n\nid\n\n"), None);
    }

    #[test]
    fn the_pause_is_the_servers_and_grows_with_refusals_up_to_a_bound() {
        assert_eq!(after("data: 1\n\n").pause(), LOCAL_STREAM_PAUSE);
        assert_eq!(after("retry: 2500\n\ndata: 1\n\n").pause(), Duration::from_millis(2_500));
        assert_eq!(after("retry: 0\n\n").pause(), RESUME_PAUSE, "it is asked for no more often than that");
        let mut position = after("id: a\nretry: 200\n\n");
        position.refused(StatusCode::BAD_GATEWAY);
        assert_eq!(position.pause(), LOCAL_STREAM_PAUSE * 2);
        for _ in 0..100 {
            position.refused(StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(position.pause(), LOCAL_STREAM_LONGEST_PAUSE);
        assert!(position.last_event().is_some(), "the server may know it still");
        position.opened();
        assert_eq!(position.pause(), Duration::from_millis(200));
        position.refused(StatusCode::NOT_FOUND);
        assert!(position.last_event().is_none());
    }
}
