//! Runs many logs in one process. Each log has its own task, so that a bad or slow log does not block the others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use crate::clock::now;
use crate::config::Config;
use crate::error::MonitorError;
use crate::limits::DEEP_FOR;
use crate::log_watcher::LogWatcher;
use crate::round::{Round, Sink};
use crate::scitt_service::{BadService, ServiceWatcher};
use crate::spans;
use crate::state::MonitorStateDir;

/// A watched log (by checkpoints and tiles) or SCITT service (by receipts).
enum AnyWatcher {
    Log(Box<LogWatcher>),
    Service(Box<ServiceWatcher>),
}

impl AnyWatcher {
    async fn round(&mut self, now: u64) -> Round {
        let span = spans::round(self.name());
        let round = async {
            match self {
                Self::Log(watcher) => watcher.round(now).await,
                Self::Service(watcher) => watcher.round(now).await,
            }
        };
        let round = round.instrument(span.clone()).await;
        spans::end_round(&span, &round);
        round
    }

    fn name(&self) -> &str {
        match self {
            Self::Log(watcher) => watcher.name(),
            Self::Service(watcher) => watcher.name(),
        }
    }

    /// Records that the sink has saved the last round, so that its findings are not reported again.
    fn mark_reported(&mut self) {
        match self {
            Self::Log(watcher) => watcher.mark_reported(),
            Self::Service(_) => {}
        }
    }
}

/// A monitor with its locked state directory and its watchers.
pub struct Monitor {
    every: Duration,
    watchers: Vec<AnyWatcher>,
    /// Keeps the state directory locked against other monitors.
    _dir: MonitorStateDir,
}

impl Monitor {
    /// Locks the state directory and loads the state of each log.
    ///
    /// # Errors
    /// If another monitor holds the state directory, a file cannot be used, or the state is that of another log.
    pub fn begin(config: &Config) -> Result<Self, MonitorError> {
        let dir = MonitorStateDir::take(&config.state_dir)?;
        let mut watchers = Vec::with_capacity(config.logs.len());
        for target in &config.logs {
            let watcher = LogWatcher::new(target.clone(), dir.log(&target.name)?, now())?;
            watchers.push(AnyWatcher::Log(Box::new(watcher)));
        }
        for target in &config.services {
            let failed =
                |why: BadService| MonitorError::Target { log: target.name.clone(), why: why.to_string() };
            let watcher = ServiceWatcher::open(target, &dir).map_err(failed)?;
            watchers.push(AnyWatcher::Service(Box::new(watcher)));
        }
        Ok(Self { every: config.every, watchers, _dir: dir })
    }

    /// Makes one round of every log, concurrently.
    pub async fn once(&mut self, sink: &dyn Sink) -> Vec<Round> {
        let rounds = self.watchers.iter_mut().map(|watcher| async move {
            let round = watcher.round(now()).await;
            if sink.keep(&round).await {
                watcher.mark_reported();
            }
            round
        });
        futures::future::join_all(rounds).await
    }

    /// Makes rounds until `stop` completes. Rounds in progress are then cancelled; progress that was saved is kept.
    ///
    /// # Errors
    /// [`MonitorError::Broken`] if a log's task panicked: the process supervisor should restart the monitor.
    pub async fn run(self, sink: Arc<dyn Sink>, stop: impl Future<Output = ()>) -> Result<(), MonitorError> {
        let Self { every, watchers, _dir } = self;
        let (stop_tasks, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for mut watcher in watchers {
            if let AnyWatcher::Log(watcher) = &mut watcher {
                watcher.limit_deep_checks(DEEP_FOR);
            }
            tasks.spawn(watch_until_stopped(watcher, every, sink.clone(), stopping.clone()));
        }
        let broken = tokio::select! {
            () = stop => None,
            Some(ended) = tasks.join_next() => ended.err(),
        };
        let _ = stop_tasks.send(true);
        let mut ends: Vec<_> = broken.into_iter().collect();
        while let Some(ended) = tasks.join_next().await {
            ends.extend(ended.err());
        }
        ends.first().map_or(Ok(()), |why| Err(MonitorError::Broken(why.to_string())))
    }
}

/// Makes a round every `every` until `stop` changes.
async fn watch_until_stopped(
    mut watcher: AnyWatcher,
    every: Duration,
    sink: Arc<dyn Sink>,
    mut stop: watch::Receiver<bool>,
) {
    let mut next = Instant::now();
    loop {
        let round = tokio::select! {
            biased;
            _ = stop.changed() => return,
            round = make_round_at(next, &mut watcher) => round,
        };
        // Missed rounds are not made up for.
        next = next.max(Instant::now().checked_sub(every).unwrap_or(next)) + jittered(every);
        for alarm in &round.alarms {
            tracing::warn!(log = %round.log, kind = %alarm.kind, about = %alarm.about, "{}", alarm.words);
        }
        if sink.keep(&round).await {
            watcher.mark_reported();
        }
    }
}

/// Waits until `time`, then makes the round.
async fn make_round_at(time: Instant, watcher: &mut AnyWatcher) -> Round {
    tokio::time::sleep_until(time).await;
    watcher.round(now()).await
}

/// Returns 90 % to 110 % of `every`, so that monitors started together do not stay synchronized.
fn jittered(every: Duration) -> Duration {
    let random = f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX);
    every.mul_f64(0.9 + random / 5.0)
}
