//! Saves the results of rounds: first the evidence file, then the webhook message, then the list of alarms; only then
//! are listeners notified.
//!
//! ```text
//! <state_dir>/evidence/<kind>-<size>-<hash>.json   evidence for third parties: `tabellion checkpoint diff FILE`
//! <state_dir>/evidence/<kind>-<hash>.cbor          an accusation against a search index alone
//! <state_dir>/webhooks/…                           messages not delivered yet
//! <state_dir>/alarms.json                          standing alarms and recently ended ones
//! <state_dir>/<log>/round.json                     the last round
//! ```
//!
//! Each file is durable before the next is written: after a crash an alarm may be sent twice, but is never lost.
//!
//! Not here: the checks (`log_watcher.rs`), and the verification of evidence ([`crate::verdict`]).

mod evidence_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use durable::FileAccess;
use serde::Serialize;

pub use evidence_file::{EvidenceFile, NotEvidence};

use crate::alarm::Alarm;
use crate::alarm_list::{AlarmList, AlarmRecord, AlarmsError};
use crate::clock::now;
use crate::config::Config;
use crate::limits::MAX_STATE_BYTES;
use crate::metrics::Metrics;
use crate::round::{Round, Sink};
use crate::webhook::{OpenError, Pass, WebhookPublicKey, Webhooks};

/// Events for listeners, sent as they happen.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum MonitorEvent {
    /// A round has ended.
    Round {
        /// The round, without evidence (which is kept in files).
        round: Box<Round>,
    },
    /// A new alarm was raised.
    Raised {
        /// The alarm, with the path of its evidence file.
        alarm: Box<AlarmRecord>,
    },
    /// An alarm ended because its cause is no longer observed; see [`AlarmKind::passes`](crate::AlarmKind::passes).
    Cleared {
        /// The ended alarm.
        alarm: Box<AlarmRecord>,
    },
}

/// Callback for events.
pub type EventListener = Box<dyn Fn(&MonitorEvent) + Send + Sync>;

/// The [`Sink`] that saves rounds and alarms in the state directory and queues webhooks.
pub struct RoundRecorder {
    state_dir: PathBuf,
    webhooks: Arc<Webhooks>,
    metrics: Arc<Metrics>,
    listener: EventListener,
    failed: AtomicBool,
}

/// Reasons for which a result was not saved.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Alarms(#[from] AlarmsError),
    #[error("evidence: {0}")]
    Evidence(std::io::Error),
    #[error("the last round: {0}")]
    Round(std::io::Error),
}

impl RoundRecorder {
    /// Creates a recorder for a state directory; `listener` receives alarms once they are saved, and every round.
    pub fn new(
        state_dir: &Path,
        webhooks: Arc<Webhooks>,
        metrics: Arc<Metrics>,
        listener: EventListener,
    ) -> Self {
        let state_dir = state_dir.to_owned();
        let recorder = Self { state_dir, webhooks, metrics, listener, failed: AtomicBool::new(false) };
        match AlarmList::read(&recorder.state_dir) {
            Ok(alarms) => recorder.metrics.stand_at_start(&alarms),
            Err(error) => recorder.fail(&error.into()),
        }
        recorder
    }

    /// Creates a recorder as configured.
    ///
    /// # Errors
    /// [`OpenError`] if a webhook receiver, a key or a secret cannot be used.
    pub fn open(config: &Config, listener: EventListener) -> Result<Self, OpenError> {
        let webhooks = Arc::new(Webhooks::open(config)?);
        let services = config.services.iter().map(|service| service.name.as_str());
        let logs = config.logs.iter().map(|log| log.name.as_str()).chain(services);
        let metrics = Metrics::new(logs).map_err(|why| OpenError::File {
            path: config.state_dir.clone(),
            why: std::io::Error::other(why.to_string()),
        })?;
        Ok(Self::new(&config.state_dir, webhooks, Arc::new(metrics), listener))
    }

    /// The monitor's metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// The key that signs webhooks; `None` if no webhook is configured.
    pub fn webhook_key(&self) -> Option<WebhookPublicKey> {
        (!self.webhooks.is_empty()).then(|| self.webhooks.public_key())
    }

    /// Attempts once to deliver all due messages.
    pub async fn send(&self) {
        let pass = self.webhooks.pass(now()).await;
        self.metrics.webhooks(pass, self.webhooks.waiting());
    }

    /// Delivers messages until the future is dropped.
    pub async fn send_always(&self) {
        self.metrics.webhooks(Pass::default(), self.webhooks.waiting());
        self.webhooks.run(now, |pass| self.metrics.webhooks(pass, self.webhooks.waiting())).await;
    }

    /// Returns `true` if a result could not be saved since the start: the files are then incomplete.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn write(&self, round: &Round) -> Result<Vec<MonitorEvent>, RecordError> {
        let mut alarms = self.alarms(round.at)?;
        let mut events = Vec::new();
        for alarm in &round.alarms {
            if alarms.repeat(alarm, round.at) || alarms.is_reset_finding(alarm) {
                continue;
            }
            let standing = self.raise(alarm, &mut alarms, round.at)?;
            events.extend(standing.map(|alarm| MonitorEvent::Raised { alarm: Box::new(alarm) }));
        }
        for cleared in alarms.clear_what_passed(round) {
            self.notify("monitor.alarm.cleared", &cleared, None, round.at);
            events.push(MonitorEvent::Cleared { alarm: Box::new(cleared) });
        }
        alarms.write()?;
        self.metrics.stands(&alarms);
        self.keep_round(round).map_err(RecordError::Round)?;
        Ok(events)
    }

    /// Locks the list of alarms. An unreadable list is renamed for the operator, so that new alarms can still be
    /// raised.
    fn alarms(&self, now: u64) -> Result<AlarmList, RecordError> {
        match AlarmList::lock(&self.state_dir) {
            Err(error @ AlarmsError::Unreadable { .. }) => {
                self.fail(&error.into());
                AlarmList::rename_damaged(&self.state_dir, now)?;
                Ok(AlarmList::lock(&self.state_dir)?)
            }
            other => Ok(other?),
        }
    }

    /// Saves the evidence, queues the webhook, then adds the alarm. `None` if too many alarms of this kind stand
    /// already: it is only counted.
    fn raise(
        &self,
        alarm: &Alarm,
        alarms: &mut AlarmList,
        now: u64,
    ) -> Result<Option<AlarmRecord>, RecordError> {
        if alarms.is_full_for(alarm) {
            if alarms.count_unlisted(alarm) {
                tracing::error!(kind = %alarm.kind, log = alarm.log, "too many alarms of this kind are active: further ones are only counted");
            }
            return Ok(None);
        }
        let evidence = EvidenceFile::of(alarm);
        let name = evidence.as_ref().map(|file| file.keep(&self.state_dir)).transpose();
        let standing = AlarmRecord::new(alarm, now, name.map_err(RecordError::Evidence)?);
        self.notify("monitor.alarm.raised", &standing, evidence.as_ref(), now);
        alarms.stand(standing.clone());
        self.metrics.raised(alarm);
        Ok(Some(standing))
    }

    /// Queues a webhook message. A full queue is only logged and counted: the alarm itself is still saved.
    fn notify(&self, kind: &str, standing: &AlarmRecord, evidence: Option<&EvidenceFile>, now: u64) {
        #[derive(Serialize)]
        struct AlarmMessage<'a> {
            alarm: &'a AlarmRecord,
            #[serde(skip_serializing_if = "Option::is_none")]
            evidence: Option<&'a EvidenceFile>,
        }
        let id = format!("msg_{}_{}", standing.id, kind.rsplit('.').next().unwrap_or(kind));
        let small = evidence.filter(|file| file.is_small());
        let kept = self.webhooks.enqueue(&id, kind, now, &AlarmMessage { alarm: standing, evidence: small });
        if let Err(error) = kept {
            tracing::error!(%error, id, "a webhook was not kept and will not be sent");
            self.metrics.not_told();
        }
    }

    /// Saves the round for `tabellion monitor status`.
    fn keep_round(&self, round: &Round) -> std::io::Result<()> {
        let folder = self.state_dir.join(&round.log);
        durable::make_folder(&folder, FileAccess::Secret)?;
        durable::replace(
            &folder.join(ROUND),
            &serde_json::to_vec(&without_evidence(round))?,
            FileAccess::Secret,
        )?;
        Ok(())
    }

    fn fail(&self, error: &RecordError) {
        tracing::error!(%error, "the findings could not be stored");
        self.failed.store(true, Ordering::Relaxed);
        self.metrics.not_kept();
    }
}

/// File of a log's last round.
const ROUND: &str = "round.json";

#[async_trait]
impl Sink for RoundRecorder {
    async fn round(&self, round: &Round) {
        self.keep(round).await;
    }

    async fn keep(&self, round: &Round) -> bool {
        self.metrics.round(round);
        // Files are small and few, so a blocking task would cost more than it saves.
        let events = self.write(round);
        match &events {
            Ok(events) => events.iter().for_each(|event| (self.listener)(event)),
            Err(error) => self.fail(error),
        }
        (self.listener)(&MonitorEvent::Round { round: Box::new(without_evidence(round)) });
        events.is_ok()
    }
}

/// The last round of each log, as saved in the state directory. Unreadable files are skipped.
///
/// # Errors
/// If the state directory cannot be read.
pub fn last_rounds(state_dir: &Path) -> std::io::Result<Vec<Round>> {
    let mut rounds = Vec::new();
    for name in durable::names(state_dir, "")? {
        let bytes = durable::read(&state_dir.join(&name).join(ROUND), MAX_STATE_BYTES);
        let round = bytes.ok().flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        rounds.extend(round);
    }
    Ok(rounds)
}

fn without_evidence(round: &Round) -> Round {
    let alarms = round.alarms.iter().map(|alarm| Alarm { evidence: None, ..alarm.clone() }).collect();
    Round { alarms, ..round.clone() }
}

#[cfg(test)]
mod tests;
