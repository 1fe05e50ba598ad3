//! Jobs: accepted requests, their workers, and waiting for results.
//!
//! A job is durable before its request is answered, and jobs that a dead process left are run at the next start. A
//! request that a client repeats has the job that it had before.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use checks::{CheckRequest, Report, RunChecks, RunError, Stamp};
use serde_json::Value;
use serving::request_span;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};
use uuid::Uuid;
use verification_store::{JobState, NewJob, StoreError, StoredJob, VerificationStore};

use crate::chain_signer::{ChainSigner, NotSigned};
use crate::clients::Client;
use crate::limits::{SIGN_FIRST_WAIT, SIGN_LONGEST_WAIT, UNENDED_CHECKS};
use crate::metrics::Metrics;
use crate::queue::{JobPlace, JobQueue, NoPlace};
use crate::running::RunningJobs;
use crate::spans;
use crate::time::{now, rfc3339};

/// The verification software in receipts.
const VERIFIER: &str = concat!("tabellion/", env!("CARGO_PKG_VERSION"));

/// Code of a job whose engine is not available.
pub const ENGINE_UNAVAILABLE: &str = "engine-unavailable";
/// Code of a job whose runner failed.
pub const RUNNER_FAILED: &str = "runner-failed";
/// Code of a job during whose checks the service ended several times.
pub const INTERRUPTED: &str = "interrupted";
/// Code of a job whose receipt cannot be added to its chain.
pub const CHAIN_HALTED: &str = "chain-halted";
/// Code of a job whose receipt cannot be signed or stored.
pub const NOT_SIGNED: &str = "not-signed";

/// The reason why a request is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// There is no place for it.
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    /// The database does not store the request.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A verification receipt that is not signed yet.
struct UnsignedReceipt {
    /// The agent, if there is one.
    subject: Option<String>,
    receipt: Value,
}

/// A failure to make a receipt, which ends a job.
struct Failure {
    code: &'static str,
    reason: String,
}

/// How long a request waits.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// For its result.
    pub result: Duration,
    /// For the log's receipt, once the verification receipt is signed.
    pub log_receipt: Duration,
}

/// The accepted requests.
pub struct Jobs {
    pub store: Arc<VerificationStore>,
    pub chain_signer: ChainSigner,
    pub runner: Arc<dyn RunChecks>,
    pub metrics: Arc<Metrics>,
    pub running: Arc<RunningJobs>,
    /// Changed when the state of any job changed.
    pub changes: watch::Sender<()>,
    pub queue: Arc<JobQueue>,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}

impl Jobs {
    /// Starts the jobs that an earlier process left. They may exceed the queue. Those whose checks seem to end the process
    /// fail instead.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn resume(self: &Arc<Self>) -> Result<(), StoreError> {
        for job in self.store.pending_jobs().await? {
            if job.unended >= UNENDED_CHECKS {
                self.fail(&job.id, Failure::interrupted(job.unended)).await;
                continue;
            }
            let place = self.queue.place_of_accepted(&job.client);
            self.start(job, place);
        }
        Ok(())
    }

    /// Returns the number of jobs that are not finished.
    pub fn unfinished(&self) -> usize {
        self.tasks.len()
    }

    /// Accepts a request, or finds the job that the client's request about the same agent had before. A failed job is tried
    /// again, and a pending one that nothing runs is started.
    ///
    /// # Errors
    /// [`NotAccepted`]; a new request is then forgotten.
    pub async fn submit(
        self: &Arc<Self>,
        client: &Client,
        request: &CheckRequest,
        text: &[u8],
    ) -> Result<StoredJob, NotAccepted> {
        let (digest, subject) = (request.digest(), request.subject().or(client.subject.as_deref()));
        let earlier = match self.store.job_of_request(&client.name, &digest, subject).await? {
            Some(job) if self.needs_no_start(&job) => return Ok(job),
            earlier => earlier,
        };
        let place = self.queue.place(&client.name)?;
        let job = match earlier {
            Some(job) => self.pending_again(job, text).await?,
            None => self.store.add_job(&new_job(client, digest, subject, text)).await?,
        };
        self.start(job.clone(), place);
        Ok(job)
    }

    fn needs_no_start(&self, job: &StoredJob) -> bool {
        match job.state {
            JobState::Done(_) => true,
            JobState::Pending => self.running.contains(&job.id),
            JobState::Failed { .. } => false,
        }
    }

    /// Makes a failed job pending, unless another request has done so just now.
    async fn pending_again(&self, job: StoredJob, text: &[u8]) -> Result<StoredJob, StoreError> {
        // The run that failed may still be ending.
        self.running.ended(&job.id).await;
        self.store.retry_job(&job.id, text).await?;
        let job = self.store.job(&job.id).await?;
        job.ok_or_else(|| StoreError::Unavailable("the job was removed just now".into()))
    }

    /// Runs a pending job, unless it runs already.
    fn start(self: &Arc<Self>, job: StoredJob, place: JobPlace) {
        if job.state != JobState::Pending {
            return;
        }
        let Some(running) = self.running.begin(&job.id) else { return };
        let (jobs, stop) = (self.clone(), self.stop.clone());
        let task = async move {
            tokio::select! {
                () = jobs.run(job, place) => {}
                // The next start runs it.
                () = stop.cancelled() => {}
            }
            drop(running);
        };
        self.tasks.spawn(task.in_current_span());
    }

    /// Runs a job to its end.
    async fn run(&self, job: StoredJob, mut place: JobPlace) {
        let id = job.id.clone();
        let unsigned = in_span(spans::checks(&id), self.receipt_of(job, &place)).await;
        place.checked();
        let ended = match unsigned {
            Ok(Some(unsigned)) => in_span(spans::signature(&id), self.sign(&id, unsigned)).await,
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            self.fail(&id, failure).await;
        }
    }

    async fn fail(&self, job: &str, Failure { code, reason }: Failure) {
        tracing::warn!(job, code, reason, "a request could not be checked");
        self.metrics.failed(code);
        if let Err(error) = self.store.fail_job(job, code, &reason, now()).await {
            tracing::error!(job, %error, "a repeated request or the next start tries it again");
        }
    }

    /// Runs the checks and makes the receipt; `None` if the job is not pending any more.
    async fn receipt_of(&self, job: StoredJob, place: &JobPlace) -> Result<Option<UnsignedReceipt>, Failure> {
        let failed = |error: &dyn Display| Failure { code: RUNNER_FAILED, reason: error.to_string() };
        let worker = place.worker().await.map_err(|error| failed(&error))?;
        let Some(text) = self.begin_checks(&job.id).await else { return Ok(None) };
        let request = CheckRequest::parse(&text).map_err(|error| failed(&error));
        drop(text);
        let report = match request {
            Ok(request) => self.check(request.clone()).await.map(|report| (request, report)),
            Err(failure) => Err(failure),
        };
        drop(worker);
        self.end_checks(&job.id).await;
        let (request, report) = report?;
        let verdict = report.verdict().as_str();
        tracing::info!(job = job.id, verdict, "checked");
        spans::judged(&Span::current(), request.tier(), verdict);
        let receipt = checks::receipt(&request, &report, stamp());
        Ok(Some(UnsignedReceipt { subject: job.subject, receipt }))
    }

    /// Records that the checks of a job begin, and returns the text of its request; `None` if the job is not pending, or the
    /// database does not answer.
    async fn begin_checks(&self, job: &str) -> Option<Bytes> {
        self.store.begin_checks(job).await.unwrap_or_else(|error| {
            tracing::error!(job, %error, "a repeated request or the next start runs it");
            None
        })
    }

    async fn end_checks(&self, job: &str) {
        if let Err(error) = self.store.end_checks(job).await {
            tracing::warn!(job, %error, "the end of the checks is not recorded");
        }
    }

    async fn check(&self, request: CheckRequest) -> Result<Report, Failure> {
        let (runner, begun) = (self.runner.clone(), Instant::now());
        self.metrics.check_begins();
        let ran = tokio::task::spawn_blocking(move || runner.run(&request)).await;
        self.metrics.check_ended(begun.elapsed());
        match ran {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error @ RunError::Unavailable { .. })) => {
                Err(Failure { code: ENGINE_UNAVAILABLE, reason: error.to_string() })
            }
            Ok(Err(error)) => Err(Failure { code: RUNNER_FAILED, reason: error.to_string() }),
            Err(error) => Err(Failure { code: RUNNER_FAILED, reason: error.to_string() }),
        }
    }

    /// Signs the receipt; retries while the log or the database does not answer.
    async fn sign(&self, job: &str, unsigned: UnsignedReceipt) -> Result<(), Failure> {
        let UnsignedReceipt { subject, receipt } = unsigned;
        let verdict = receipt["verdict"].as_str().unwrap_or_default().to_owned();
        let mut wait = SIGN_FIRST_WAIT;
        loop {
            match self.chain_signer.conclude(job, subject.as_deref(), receipt.clone()).await {
                Ok(()) => {
                    self.metrics.signed(&verdict);
                    return Ok(());
                }
                Err(error) if error.is_temporary() => {
                    tracing::warn!(job, %error, "a receipt is not signed yet");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(SIGN_LONGEST_WAIT);
                }
                Err(error) if self.is_done(job).await => {
                    tracing::info!(job, %error, "the receipt was stored before");
                    return Ok(());
                }
                Err(error) => return Err(Failure::of(&error)),
            }
        }
    }

    /// Returns whether a job has its receipt, which may be so after a commit whose outcome was unknown.
    async fn is_done(&self, id: &str) -> bool {
        matches!(self.store.job(id).await, Ok(Some(StoredJob { state: JobState::Done(_), .. })))
    }

    /// Waits until a job has failed, or has the log's answer, for as long as requests wait, or until the service stops.
    /// Returns its state then.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn wait(&self, id: &str, waits: Waits) -> Result<Option<StoredJob>, StoreError> {
        let mut changes = self.changes.subscribe();
        let mut until = tokio::time::Instant::now() + waits.result;
        let mut is_signed = false;
        loop {
            let job = self.store.job(id).await?;
            match job.as_ref().map(|job| &job.state) {
                Some(JobState::Pending) => {}
                Some(JobState::Done(receipt))
                    if receipt.log_receipt.is_none() && receipt.refused.is_none() =>
                {
                    if !is_signed {
                        is_signed = true;
                        until = until.min(tokio::time::Instant::now() + waits.log_receipt);
                    }
                }
                _ => return Ok(job),
            }
            tokio::select! {
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep_until(until) => return Ok(job),
                () = self.stop.cancelled() => return Ok(job),
            }
        }
    }
}

/// Runs a part of a job in its span, which has the code of its failure.
async fn in_span<T>(span: Span, part: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let ended = part.instrument(span.clone()).await;
    if let Err(failure) = &ended {
        request_span::fail(&span, failure.code);
    }
    ended
}

fn new_job(client: &Client, digest: String, subject: Option<&str>, text: &[u8]) -> NewJob {
    NewJob {
        id: Uuid::new_v4().to_string(),
        client: client.name.clone(),
        digest,
        subject: subject.map(str::to_owned),
        request: Bytes::copy_from_slice(text),
        at: now(),
    }
}

fn stamp() -> Stamp {
    Stamp {
        receipt_id: Uuid::new_v4().to_string(),
        verified_at: rfc3339(now()),
        verifier: VERIFIER.to_owned(),
    }
}

impl Failure {
    fn interrupted(times: u64) -> Self {
        let reason = format!("the service ended while it checked this request; attempts: {times}");
        Self { code: INTERRUPTED, reason }
    }

    fn of(error: &NotSigned) -> Self {
        let code = match error {
            NotSigned::Halted(_) | NotSigned::Recovery(_) => CHAIN_HALTED,
            NotSigned::Receipt(_) | NotSigned::Store(_) => NOT_SIGNED,
        };
        Self { code, reason: error.to_string() }
    }
}
