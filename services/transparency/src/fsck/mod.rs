//! Continuous check of the storage while the service runs.
//!
//! The leading process, or each that serves a frozen log, walks the whole log again and again (`store::fsck`), slowly:
//! a few entries at a time, at a limited rate of rows, with a pause between walks. The progress is kept in
//! `state_dir/fsck.json`: a restart resumes there, and so does the next leader if the state directory is shared. Each
//! start begins with the quick check of the state that it is about to sign on.
//!
//! A finding is logged once, counted, and listed by `/readyz` until a complete walk no longer finds it. Findings do not
//! stop registration: a damaged old row does not make a new one wrong, and the sequencer itself detects a state that
//! must not be signed on.
//!
//! Not here: the checks themselves (`store::fsck`, `facts`), and a check by hand (`tabellion log fsck`), which also
//! compares the heads of the search index (`heads`).

pub mod archived;
mod check_state;
pub mod facts;
pub mod heads;
mod pace;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sequencer::{Halt, Role};
use store::StoreError;
use store::fsck::{DeepCheck, Fsck, FsckState, FsckStep};
use tokio::time::{Instant, sleep};

use crate::fsck::facts::LogFacts;
use crate::limits::{FSCK_KEPT_EVERY, FSCK_PAGE, FSCK_POLL, FSCK_RETRY};
use crate::log::state::Log;
use crate::time::now;
use check_state::{CheckStateFile, CleanWalk, SavedCheck};
pub use pace::RowRate;

/// The rate of the check, and the folder of its state.
#[derive(Clone, Debug)]
pub struct CheckSchedule {
    /// Rows per second; 0 turns the check off.
    pub rate: u32,
    /// The pause between two walks.
    pub every: Duration,
    /// Folder of the state file (`fsck.json`).
    pub state_dir: PathBuf,
}

/// Checks for as long as this process runs.
pub async fn keep_checking(log: Arc<Log>, schedule: CheckSchedule) {
    if schedule.rate == 0 {
        return;
    }
    let file = CheckStateFile::in_directory(&schedule.state_dir);
    let mut checking = StorageCheck { log, schedule, file, check_state: SavedCheck::default() };
    checking.take_up().await;
    loop {
        checking.until_due().await;
        let pause = match checking.round().await {
            Ok(RoundEnd::Complete) => checking.schedule.every,
            Ok(RoundEnd::NotDue) => FSCK_POLL,
            Err(error) => {
                tracing::warn!(%error, "the check of the storage waits");
                FSCK_RETRY
            }
        };
        sleep(pause).await;
    }
}

/// Returns `true` if a process in this role checks. A frozen log has no leader, and storage kept for ever is what
/// decays, so each of its processes checks.
fn is_due(role: &Role) -> bool {
    matches!(role, Role::Leading { .. } | Role::Halted(Halt::Frozen))
}

/// The end of a round.
enum RoundEnd {
    /// The walk is complete.
    Complete,
    /// This process no longer leads.
    NotDue,
}

struct StorageCheck {
    log: Arc<Log>,
    schedule: CheckSchedule,
    file: CheckStateFile,
    check_state: SavedCheck,
}

impl StorageCheck {
    /// Restores the state that the last process stored.
    async fn take_up(&mut self) {
        self.check_state = self.file.read().await.unwrap_or_else(|why| {
            tracing::warn!(why, "the check of the storage begins anew");
            SavedCheck::default()
        });
        self.log.fsck.restore(self.check_state.findings.clone(), self.check_state.omitted);
        if let Some(clean) = &self.check_state.clean {
            self.log.metrics.fsck.last_success.set(clean.at.cast_signed());
        }
        self.log
            .metrics
            .fsck
            .mismatches
            .inc_by(self.check_state.findings.len() as u64 + self.check_state.omitted);
    }

    async fn until_due(&self) {
        let mut status = self.log.sequencer.status();
        if status.wait_for(|status| is_due(&status.role)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn is_due(&self) -> bool {
        is_due(&self.log.sequencer.status().borrow().role)
    }

    /// Makes the quick check if this process has not yet, and then resumes the stored walk or begins a new one.
    async fn round(&mut self) -> Result<RoundEnd, StoreError> {
        let log = self.log.clone();
        let meaning = LogFacts::of(&log.identity.origin)?;
        if !self.check_state.looked_quickly {
            let report = Fsck::new(&*log.store, &meaning).quick().await?;
            let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            self.found(&found);
            self.check_state.looked_quickly = true;
        }
        let mut walk = match self.check_state.walk.take() {
            Some(state) => match DeepCheck::resume(&*log.store, &meaning, &state).await {
                Ok(Ok(walk)) => walk,
                Ok(Err(bad)) => {
                    self.found(&[format!("log: {bad}")]);
                    DeepCheck::begin(&*log.store, &meaning).await?
                }
                Err(error) => {
                    self.check_state.walk = Some(state);
                    return Err(error);
                }
            },
            None => DeepCheck::begin(&*log.store, &meaning).await?,
        }
        .in_pages_of(FSCK_PAGE);
        let mut reported = 0;
        let mut written = Instant::now();
        let mut pace = RowRate::of(self.schedule.rate);
        loop {
            let step = walk.step().await;
            let findings = walk.report().findings.iter().skip(reported).map(ToString::to_string);
            let new: Vec<String> = findings.collect();
            reported += new.len();
            self.found(&new);
            self.show(&walk);
            match step {
                Ok(FsckStep::Checked(rows)) => pace.spent(rows).await,
                Ok(FsckStep::Done) => break,
                Err(error) => {
                    self.keep(walk.state()).await;
                    return Err(error);
                }
            }
            if !self.is_due() {
                self.keep(walk.state()).await;
                return Ok(RoundEnd::NotDue);
            }
            if written.elapsed() > FSCK_KEPT_EVERY || !new.is_empty() {
                self.keep(walk.state()).await;
                written = Instant::now();
            }
        }
        self.complete(&walk).await;
        Ok(RoundEnd::Complete)
    }

    fn show(&self, walk: &DeepCheck<'_>) {
        let entries = walk.progress().entries;
        self.log.metrics.fsck.progress.set(i64::try_from(entries).unwrap_or(i64::MAX));
    }

    /// Logs and counts the findings that are new.
    fn found(&mut self, findings: &[String]) {
        for finding in self.log.fsck.add(findings) {
            tracing::error!(finding, "the stored log is damaged");
            self.log.metrics.fsck.mismatches.inc();
        }
    }

    /// Replaces the findings by those of a complete walk.
    async fn complete(&mut self, walk: &DeepCheck<'_>) {
        let (size, findings) = (walk.report().size.get(), walk.findings());
        self.log.fsck.replace(findings, walk.report().omitted);
        if walk.is_clean() {
            let at = now();
            self.check_state.clean = Some(CleanWalk { at, size });
            self.log.metrics.fsck.last_success.set(at.cast_signed());
        }
        tracing::info!(size, clean = walk.is_clean(), "the stored log was checked");
        self.keep(None).await;
    }

    /// Stores the progress of the walk. After a failure a restart only repeats some work.
    async fn keep(&mut self, walk: Option<FsckState>) {
        (self.check_state.findings, self.check_state.omitted) = self.log.fsck.all();
        self.check_state.walk = walk;
        if let Err(why) = self.file.write(&self.check_state).await {
            tracing::warn!(why, "the progress of the storage check cannot be stored");
        }
    }
}
