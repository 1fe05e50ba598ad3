//! `tabellion checkpoint diff`: determines whether one log can have signed two checkpoints. It serves parties who trust
//! neither the log nor the monitor that reports a fork.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use client::tlog::{Options, TlogClient, TlogError};
use merkle::{Hash, NodeId, TreeSize};
use monitor::EvidenceFile;
use monitor::round::Outcome;
use monitor::verdict::{CheckpointKeys, ClaimedHead, Join, Verdict, VerificationResult, compare, judge};
use owo_colors::OwoColorize;
use serde::Deserialize;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::{KeyKind, VerifierKey};
use tlog::note::Note;

use crate::commands::verify::input;
use crate::console::{Exit, Failure, files, safe};
use crate::context::Context;
use crate::runtime;
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion checkpoint diff evidence/fork-1204-9b1d22aa.json --key VKEY")]
pub struct Diff {
    /// A checkpoint, or an evidence file
    first: PathBuf,
    /// The other checkpoint
    second: Option<PathBuf>,
    /// The log's checkpoint key, required for a verdict
    #[arg(long, value_name = "VKEY")]
    key: Vec<VerifierKey>,
    /// The log's origin, if it is not the key's name
    #[arg(long, value_name = "ORIGIN", requires = "key")]
    origin: Option<Origin>,
    /// The trust file, for evidence that consists of receipts
    #[arg(long, value_name = "FILE", conflicts_with = "second")]
    trust: Option<PathBuf>,
    /// A consistency proof: JSON of /v1/proof/consistency, or one hash per line
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    proof: Option<PathBuf>,
    /// Compute the consistency proof from the tiles of the log at this URL
    #[arg(long)]
    url: Option<String>,
}

/// The proof that relates two sizes, from a file or fetched.
enum Joint {
    Nothing,
    Proof(Vec<Hash>),
    Node(Hash, Vec<Hash>),
}

impl Diff {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(key) = self.key.iter().find(|key| key.kind() != KeyKind::Ed25519) {
            let what = format!("{} is a witness's key, not a log's", key.name());
            return Err(Failure::new(Exit::Usage, "usage", what));
        }
        let finding = match &self.second {
            Some(second) => {
                self.two([input::checkpoint_bytes(&self.first)?, input::checkpoint_bytes(second)?])?
            }
            None => self.accusation(&files::read(&self.first)?, context)?,
        };
        context.console.print(&finding, |out| lines(out, &finding))?;
        ending(&finding)
    }

    fn known(&self) -> CheckpointKeys<'_> {
        CheckpointKeys { keys: &self.key, origin: self.origin.as_ref().map(Origin::as_str) }
    }

    fn accusation(&self, bytes: &[u8], context: &Context) -> Result<VerificationResult, Failure> {
        let file = evidence(&self.first, bytes)?;
        let trust = self.trust.as_deref().map(|path| TrustFile::find(context, Some(path))).transpose()?;
        Ok(judge(&file.alarm, self.known(), trust.as_ref().map(|file| &file.store)))
    }

    fn two(&self, notes: [Vec<u8>; 2]) -> Result<VerificationResult, Failure> {
        let joint = match (&self.proof, &self.url) {
            (Some(path), _) => Joint::Proof(proof(path)?),
            (None, Some(url)) => fetched(url, &notes)?,
            (None, None) => Joint::Nothing,
        };
        let join = match &joint {
            Joint::Nothing => Join::Nothing,
            Joint::Proof(path) => Join::Proof(path),
            Joint::Node(start, siblings) => Join::Node { start: *start, siblings },
        };
        Ok(compare([&notes[0], &notes[1]], self.known(), join))
    }
}

fn evidence(path: &Path, bytes: &[u8]) -> Result<EvidenceFile, Failure> {
    if Note::parse(bytes).is_ok() {
        let what = format!("{} is a checkpoint: name another one to compare it with", path.display());
        return Err(Failure::new(Exit::Usage, "usage", what));
    }
    EvidenceFile::parse(bytes).map_err(|why| {
        Failure::new(Exit::NotVerified, "evidence-unusable", format!("{}: {why}", path.display()))
    })
}

fn proof(path: &Path) -> Result<Vec<Hash>, Failure> {
    #[derive(Deserialize)]
    struct RootAnswer {
        path: Vec<String>,
    }
    let text = files::read_text(path)?;
    let hashes: Vec<String> = match serde_json::from_str::<RootAnswer>(&text) {
        Ok(answer) => answer.path,
        Err(_) => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect(),
    };
    hashes.iter().map(|text| hash(text)).collect::<Option<_>>().ok_or_else(|| {
        let what = format!("{} is not a consistency proof", path.display());
        Failure::new(Exit::NotVerified, "proof-unusable", what).fact("expected", "hashes in hex or base64")
    })
}

/// Parses a hash in hexadecimal, as our services write it, or in base64, as C2SP does.
fn hash(text: &str) -> Option<Hash> {
    let base64 = || data_encoding::BASE64.decode(text.as_bytes()).ok()?.try_into().ok().map(Hash::from_bytes);
    text.parse().ok().or_else(base64)
}

/// Fetches the node where the two trees diverge, with its siblings, from the tiles of the newer tree.
fn fetched(url: &str, notes: &[Vec<u8>; 2]) -> Result<Joint, Failure> {
    let mut sizes = [TreeSize::EMPTY; 2];
    for (size, note) in sizes.iter_mut().zip(notes) {
        let checkpoint = Note::parse(note).ok().and_then(|note| Checkpoint::parse_text(note.text()).ok());
        // The comparison itself reports a malformed checkpoint.
        let Some(checkpoint) = checkpoint else { return Ok(Joint::Nothing) };
        *size = checkpoint.size();
    }
    sizes.sort();
    let [older, newer] = sizes;
    if older == newer || older == TreeSize::EMPTY {
        return Ok(Joint::Nothing);
    }
    let client = TlogClient::new(url, Options::default())?;
    let runtime = runtime::single_threaded()?;
    runtime.block_on(joint(&client, older, newer)).map_err(|error| unanswered(&error))
}

async fn joint(client: &TlogClient, older: TreeSize, newer: TreeSize) -> Result<Joint, TlogError> {
    let path = client.consistency(older, newer).await?;
    if !older.get().is_power_of_two() {
        return Ok(Joint::Proof(path));
    }
    // The proof from a size that is a power of two omits its start node, which shows a fork.
    let start = NodeId { level: older.get().trailing_zeros() as u8, index: 0 };
    let nodes = client.nodes(&[start], newer).await?;
    Ok(nodes.get(&start).map_or(Joint::Proof(path.clone()), |hash| Joint::Node(*hash, path)))
}

fn unanswered(error: &TlogError) -> Failure {
    Failure::new(Exit::TryAgain, "unreachable", "the log serves no proof that joins them")
        .fact("because", error.to_string())
}

fn ending(finding: &VerificationResult) -> Result<(), Failure> {
    match finding.verdict {
        Verdict::Same | Verdict::Consistent => Ok(()),
        Verdict::Contradiction => Err(two_histories(finding)),
        Verdict::Equivocation => Err(Failure::new(Exit::VerificationFailed, "chain-fork", &*finding.words)
            .why("Both signatures are the issuer's own: no other trust is needed.")
            .hint("tabellion help chain-fork")),
        Verdict::OnWord | Verdict::Unknown => Err(Failure::already_printed(Exit::NotVerified)),
        Verdict::Wrong => Err(Failure::already_printed(Exit::VerificationFailed)),
    }
}

fn two_histories(finding: &VerificationResult) -> Failure {
    let failure =
        Failure::new(Exit::LogMisbehaviour, "split-view", "the log has shown two different histories");
    let named = |first: bool, head: &ClaimedHead| match first {
        true => format!("{} signed", head.origin),
        false => "and".to_owned(),
    };
    let heads = finding.heads.iter().enumerate();
    heads
        .fold(failure.security(), |failure, (at, head)| failure.fact(named(at == 0, head), in_short(head)))
        .why("No consistency proof can join these. Stop relying on new receipts from this log.")
        .hint("tabellion help split-view")
}

fn in_short(head: &ClaimedHead) -> String {
    let seen = head.seen.as_deref().map(|seen| format!("  {seen}"));
    format!("size {}  root {}{}", head.size, head.root, seen.unwrap_or_default())
}

fn lines(out: &mut dyn Write, finding: &VerificationResult) -> io::Result<()> {
    for head in &finding.heads {
        writeln!(out, "{}  {}", safe(&head.origin), safe(&in_short(head)))?;
    }
    for step in &finding.steps {
        let words = safe(&step.words);
        match step.outcome {
            Outcome::Ok => writeln!(out, "{}    {:12}  {words}", "ok".green(), step.name)?,
            Outcome::Failed => writeln!(out, "{}  {:12}  {words}", "FAIL".red(), step.name)?,
            _ => writeln!(out, "--    {:12}  not checked: {words}", step.name)?,
        }
    }
    writeln!(out, "{}: {}", finding.verdict, safe(&finding.words))
}
