//! Notices (warnings) of the server with its answer to COMMIT.
//!
//! Under synchronous replication, the answer to a COMMIT whose wait was cancelled differs from others only by a
//! WARNING: the row is written and perhaps on no standby. sqlx reports notices as `tracing` events and in no other
//! way, so this module subscribes to these.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};

/// Target of sqlx's events for notices.
const NOTICE: &str = "sqlx::postgres::notice";

/// Collects warnings while a future runs. Make one and reuse it, as construction is expensive.
#[derive(Clone, Debug)]
pub(crate) struct ServerWarnings {
    warning: Arc<Mutex<Option<String>>>,
    dispatch: Dispatch,
}

impl ServerWarnings {
    /// Makes a collector that also passes all events on to the present subscriber.
    pub(crate) fn new() -> Self {
        let warning = Arc::default();
        let listener = NoticeListener {
            warning: Arc::clone(&warning),
            next: dispatcher::get_default(Clone::clone),
            levels: LevelFilter::current().max(LevelFilter::WARN),
        };
        Self { warning, dispatch: Dispatch::new(listener) }
    }

    /// Runs one statement; returns its result and the last warning during it. One statement at a time.
    pub(crate) async fn during<F: Future>(&self, statement: F) -> (F::Output, Option<String>) {
        self.take();
        let answer = statement.with_subscriber(self.dispatch.clone()).await;
        (answer, self.take())
    }

    fn take(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Subscriber between sqlx and the present one.
#[derive(Debug)]
struct NoticeListener {
    warning: Arc<Mutex<Option<String>>>,
    next: Dispatch,
    levels: LevelFilter,
}

fn is_warning(metadata: &Metadata<'_>) -> bool {
    metadata.target() == NOTICE && *metadata.level() <= Level::WARN
}

impl Subscriber for NoticeListener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == NOTICE {
            Interest::sometimes()
        } else {
            self.next.register_callsite(metadata)
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_warning(metadata) || self.next.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.levels)
    }

    fn event(&self, event: &Event<'_>) {
        if is_warning(event.metadata()) {
            let mut text = NoticeText::default();
            event.record(&mut text);
            *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.0);
        }
        if self.next.enabled(event.metadata()) {
            self.next.event(event);
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.next.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.next.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.next.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.next.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.next.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.next.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.next.try_close(id)
    }
}

#[derive(Default)]
struct NoticeText(String);

impl Visit for NoticeText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_warning_is_heard_and_nothing_else() {
        let warnings = ServerWarnings::new();
        let warned =
            warnings.during(async { tracing::warn!(target: "sqlx::postgres::notice", "not replicated") });
        assert_eq!(warned.await.1.as_deref(), Some("not replicated"));
        let other = warnings.during(async {
            tracing::info!(target: "sqlx::postgres::notice", "a table was skipped");
            tracing::warn!("somebody else's warning");
        });
        assert_eq!(other.await.1, None, "and the warning before it is forgotten");
    }
}
