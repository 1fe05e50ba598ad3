//! `tabellion witness submit`: submits a log's checkpoint to a witness once, as the log does automatically.
//!
//! The answers of log and witness are verified if their keys are given: the checkpoint with `--log-key`, the
//! cosignature with `--key`. The proof is computed from the log's tiles, so this works with any C2SP log.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use client::tlog::{TlogClient, TlogError};
use client::witness::{AddError, WitnessClient};
use client::{tlog as log, witness};
use merkle::TreeSize;
use tlog::checkpoint::Checkpoint;
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{Note, SignatureLine};
use tlog::witness::AddCheckpoint;

use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;
use crate::show;

/// Number of attempts, if the witness has seen a larger tree meanwhile.
const TRIES: usize = 4;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion witness submit --log http://127.0.0.1:7390 --witness http://127.0.0.1:7392"
)]
pub struct Submit {
    /// The log's base URL, without /checkpoint
    #[arg(long, value_name = "URL")]
    log: String,
    /// The witness's base URL, without /add-checkpoint
    #[arg(long, value_name = "URL")]
    witness: String,
    /// The log's key, to verify its checkpoint before submission
    #[arg(long, value_name = "VKEY")]
    log_key: Option<VerifierKey>,
    /// The witness's key, to verify its cosignature
    #[arg(long, value_name = "VKEY")]
    key: Option<VerifierKey>,
    /// Write the cosigned checkpoint to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Maximum seconds per request
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

impl Submit {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::single_threaded()?;
        let (note, checkpoint, lines) = runtime.block_on(self.submit())?;
        let time = self.key.as_ref().map(|key| check(key, &note, &lines)).transpose()?;
        if let Some(path) = &self.output {
            let merged = merged(&note, &lines)?;
            files::write(path, merged.to_string().as_bytes(), Access::Ordinary, Existing::Replace)?;
        }
        if time.is_none() {
            context.console.note("not checked  name the witness's key with --key VKEY");
        }
        let lines: Vec<_> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        let json = members! {
            origin: checkpoint.origin().to_string(),
            size: checkpoint.size().get(),
            root: checkpoint.root().to_string(),
            cosigned_at: time.map(show::time),
            lines: &lines,
        };
        context.console.print(&json, |out| lines.iter().try_for_each(|line| writeln!(out, "{}", safe(line))))
    }

    async fn submit(&self) -> Result<(Note, Checkpoint, Vec<SignatureLine>), Failure> {
        let time = Duration::from_secs(self.timeout);
        let log = TlogClient::new(&self.log, log::Options { time, ..log::Options::default() })?;
        let options = witness::Options { time, ..witness::Options::default() };
        let witness = WitnessClient::new(&self.witness, options)?;
        let (note, checkpoint) = self.checkpoint(&log).await?;
        let lines = add(&log, &witness, &note, &checkpoint).await?;
        Ok((note, checkpoint, lines))
    }

    async fn checkpoint(&self, log: &TlogClient) -> Result<(Note, Checkpoint), Failure> {
        let fetched = log.checkpoint().await.map_err(of_log)?;
        let note = Note::parse(&fetched.note).map_err(|why| nonsense("the log", &why))?;
        if let Some(key) = &self.log_key {
            note.verify(std::slice::from_ref(key)).map_err(|why| {
                Failure::new(
                    Exit::VerificationFailed,
                    "checkpoint-not-signed",
                    "the log's key did not sign this",
                )
                .fact("key", key.to_string())
                .fact("because", why.to_string())
            })?;
        }
        let checkpoint = Checkpoint::parse_text(note.text()).map_err(|why| nonsense("the log", &why))?;
        Ok((note, checkpoint))
    }
}

/// Submits the checkpoint. The first attempt learns the size that the witness has seen, and further ones prove
/// consistency from there.
async fn add(
    log: &TlogClient,
    witness: &WitnessClient,
    note: &Note,
    checkpoint: &Checkpoint,
) -> Result<Vec<SignatureLine>, Failure> {
    let mut old = TreeSize::EMPTY;
    for _ in 0..TRIES {
        let proof = proof(log, old, checkpoint.size()).await?;
        match witness.add_checkpoint(&AddCheckpoint { old, proof, checkpoint: note.clone() }).await {
            Ok(lines) => return Ok(lines),
            Err(AddError::Conflict(seen)) if seen != old && seen <= checkpoint.size() => old = seen,
            Err(error) => return Err(of_witness(error, checkpoint)),
        }
    }
    Err(Failure::new(Exit::TryAgain, "try-again", "other submitters were faster at each attempt"))
}

/// Fetches the consistency proof, which is empty from the empty tree and between equal sizes.
async fn proof(log: &TlogClient, old: TreeSize, size: TreeSize) -> Result<Vec<merkle::Hash>, Failure> {
    if old == TreeSize::EMPTY || old == size {
        return Ok(Vec::new());
    }
    log.consistency(old, size).await.map_err(of_log)
}

/// Returns the time of the cosignature in Unix seconds, if it is by this witness.
fn check(key: &VerifierKey, note: &Note, lines: &[SignatureLine]) -> Result<u64, Failure> {
    cosignature::verified(&merged(note, lines)?, key).ok_or_else(|| {
        Failure::new(
            Exit::VerificationFailed,
            "cosignature-bad",
            "the witness did not cosign this checkpoint",
        )
        .fact("key", key.to_string())
    })
}

fn merged(note: &Note, lines: &[SignatureLine]) -> Result<Note, Failure> {
    let mut merged = note.clone();
    lines
        .iter()
        .try_for_each(|line| merged.add(line.clone()))
        .map_err(|why| nonsense("the witness", &why))?;
    Ok(merged)
}

fn of_witness(error: AddError, checkpoint: &Checkpoint) -> Failure {
    let failure = |exit, code, what: &str| Failure::new(exit, code, what).fact("because", error.to_string());
    match &error {
        AddError::Conflict(_) => failure(Exit::LogMisbehaviour, "witness-ahead", "the log has lost leaves")
            .fact("log", checkpoint.origin().as_str())
            .fact("its checkpoint", format!("size {}", checkpoint.size())),
        AddError::Unproven(_) => failure(
            Exit::LogMisbehaviour,
            "witness-unproven",
            "the witness has seen another history of this log",
        )
        .fact("log", checkpoint.origin().as_str())
        .fact("its checkpoint", format!("size {}, root {}", checkpoint.size(), checkpoint.root())),
        AddError::UnknownLog(_) => {
            failure(Exit::Refused, "witness-unknown-log", "the witness does not witness this log")
                .fact("log", checkpoint.origin().as_str())
        }
        AddError::Busy { .. } => failure(Exit::TryAgain, "try-again", "the witness is busy or down"),
        AddError::Unreachable(_) => failure(Exit::TryAgain, "unreachable", "cannot reach the witness"),
        AddError::Refused { .. } => failure(Exit::Refused, "witness-refused", "the witness refuses"),
        _ => failure(Exit::Failure, "nonsense", "the witness's answer cannot be used"),
    }
}

fn of_log(error: TlogError) -> Failure {
    let (exit, code) = match &error {
        TlogError::Missing { .. } => (Exit::NotFound, "not-found"),
        TlogError::Unreachable(_) => (Exit::TryAgain, "unreachable"),
        TlogError::Refused { status, .. } if status.is_server_error() => (Exit::TryAgain, "try-again"),
        TlogError::Refused { .. } => (Exit::Refused, "refused"),
        _ => (Exit::Failure, "nonsense"),
    };
    Failure::new(exit, code, "the log does not show it").fact("because", error.to_string())
}

fn nonsense(whose: &str, why: &impl ToString) -> Failure {
    Failure::new(Exit::Failure, "nonsense", format!("the answer of {whose} cannot be used"))
        .fact("because", why.to_string())
}
