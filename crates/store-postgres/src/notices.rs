//! Notices (warnings) of the server with its answer to COMMIT.
//!
//! Under synchronous replication, the answer to a COMMIT whose wait was cancelled differs from others only by a
//! WARNING: the row is written and perhaps on no standby. sqlx reports notices as `tracing` events and in no other
//! way, so this module subscribes to these.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use store::StoreError;
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};

use crate::error::store_error;

/// Target of sqlx's events for notices.
const NOTICE: &str = "sqlx::postgres::notice";

tokio::task_local! {
    /// The last warning during a statement: of each statement its own, as many run at the same time.
    static WARNING: RefCell<Option<String>>;
}

/// Collects warnings while a future runs. Make one and reuse it, as construction is expensive.
#[derive(Clone, Debug)]
pub(crate) struct ServerWarnings {
    dispatch: Dispatch,
}

impl ServerWarnings {
    /// Makes a collector that also passes all events on to the present subscriber.
    pub(crate) fn new() -> Self {
        let listener = NoticeListener {
            next: dispatcher::get_default(Clone::clone),
            levels: LevelFilter::current().max(LevelFilter::WARN),
        };
        Self { dispatch: Dispatch::new(listener) }
    }

    /// Runs one statement; returns its result and the last warning during it.
    pub(crate) async fn during<F: Future>(&self, statement: F) -> (F::Output, Option<String>) {
        let run = async {
            let answer = statement.with_subscriber(self.dispatch.clone()).await;
            (answer, WARNING.with(RefCell::take))
        };
        WARNING.scope(RefCell::default(), run).await
    }

    /// Runs a COMMIT, or a statement that is its own transaction, in an open session. An answer with a warning is
    /// [`StoreError::Unavailable`]: what was written is perhaps on no standby.
    pub(crate) async fn acknowledged<T>(
        &self,
        commit: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        match self.during(commit).await {
            (Ok(answer), None) => Ok(answer),
            (Ok(_), Some(warning)) => Err(StoreError::Unavailable(warned(&warning))),
            (Err(error), _) => Err(store_error(error)),
        }
    }
}

/// Returns the reason why a commit does not count that was answered with this warning.
pub(crate) fn warned(warning: &str) -> String {
    format!("the commit was answered with a warning: {warning}")
}

/// Subscriber between sqlx and the present one.
#[derive(Debug)]
struct NoticeListener {
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
            // Outside of `ServerWarnings::during`, no statement waits for a warning.
            let _ = WARNING.try_with(|warning| warning.replace(Some(text.0)));
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

    #[tokio::test]
    async fn of_statements_at_the_same_time_each_hears_its_own_warning() {
        let warnings = ServerWarnings::new();
        let statement = async |warning: Option<&'static str>| {
            tokio::task::yield_now().await;
            if let Some(warning) = warning {
                tracing::warn!(target: "sqlx::postgres::notice", "{warning}");
            }
            tokio::task::yield_now().await;
        };
        let (one, two, silent) = tokio::join!(
            warnings.during(statement(Some("one"))),
            warnings.during(statement(Some("two"))),
            warnings.during(statement(None)),
        );
        assert_eq!((one.1.as_deref(), two.1.as_deref(), silent.1), (Some("one"), Some("two"), None));
    }
}
