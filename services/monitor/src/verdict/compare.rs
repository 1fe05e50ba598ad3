//! Comparison of two checkpoints.

use merkle::verify::{consistency, implied_roots};
use merkle::{Hash, RootHash, TreeSize};
use tlog::checkpoint::Checkpoint;
use tlog::key::VerifierKey;
use tlog::note::Note;

use super::{ClaimedHead, Verdict, VerificationResult};

/// Data that relates two checkpoints of different sizes.
#[derive(Clone, Copy, Debug)]
pub enum Join<'a> {
    /// No data.
    Nothing,
    /// A consistency proof (RFC 9162, 2.1.4).
    Proof(&'a [Hash]),
    /// The node at the older tree's right edge, with its siblings from the bottom up; can also show that no proof
    /// exists.
    Node {
        /// The largest perfect subtree at the older tree's right edge.
        start: Hash,
        /// The siblings from the bottom up.
        siblings: &'a [Hash],
    },
}

/// The keys of a log, from a source that the verifier trusts.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckpointKeys<'k> {
    /// The keys.
    pub keys: &'k [VerifierKey],
    /// The origin of the log whose keys these are. If `None`, each is a key of the log of its own name.
    pub origin: Option<&'k str>,
}

impl CheckpointKeys<'_> {
    /// Returns `true` if the key is one of the log with this origin: another log's key accuses only that one.
    pub(super) fn is_of(&self, key: &VerifierKey, origin: &str) -> bool {
        self.origin.unwrap_or(key.name().as_str()) == origin
    }
}

impl<'k> From<&'k [VerifierKey]> for CheckpointKeys<'k> {
    fn from(keys: &'k [VerifierKey]) -> Self {
        Self { keys, origin: None }
    }
}

impl<'k, const N: usize> From<&'k [VerifierKey; N]> for CheckpointKeys<'k> {
    fn from(keys: &'k [VerifierKey; N]) -> Self {
        Self { keys, origin: None }
    }
}

/// Compares two notes, in either order. Without keys the verdict is at most [`Verdict::Unknown`].
pub fn compare<'k>(
    notes: [&[u8]; 2],
    known: impl Into<CheckpointKeys<'k>>,
    join: Join<'_>,
) -> VerificationResult {
    let known = known.into();
    let keys = known.keys;
    let mut finding = VerificationResult::begin();
    let read = notes.map(|note| read(note, keys));
    let [(first, by), (second, by_too)] = match read {
        [Ok(first), Ok(second)] => [first, second],
        failed => {
            for (name, note) in ["first", "second"].into_iter().zip(failed) {
                if let Err(why) = note {
                    finding.failed(name, why);
                }
            }
            return finding.ends(Verdict::Wrong, "not two signed checkpoints");
        }
    };
    let (older, newer) = if first.size() <= second.size() { (first, second) } else { (second, first) };
    finding.heads = [&older, &newer].map(head).into();
    if older.origin() != newer.origin() {
        finding.failed("log", "two logs");
        return finding.ends(Verdict::Unknown, "checkpoints of two logs cannot be compared");
    }
    // A key counts only for its own log, and signatures by two keys do not contradict each other.
    let both = || by.iter().filter(|key| by_too.contains(*key));
    let own = both().find(|key| known.is_of(key, older.origin().as_str()));
    match (keys.is_empty(), own) {
        (_, Some(key)) => finding.ok("signatures", format!("both by {}", key.name())),
        (true, None) => finding.not_checked("signatures", "no key: give the log's with --key"),
        (false, None) => {
            let other = both().next().map(|key| key.name());
            let words = match other {
                Some(name) if known.origin.is_none() => format!(
                    "both by {name}, which is a key of another name than {}: if it is that log's, say so with --origin",
                    older.origin()
                ),
                _ => format!("not both by one key of {}", older.origin()),
            };
            finding.failed("signatures", words);
            return finding.ends(Verdict::Unknown, "no key that is the log's own signed both");
        }
    }
    let finding = related(finding, &older, &newer, join);
    match (keys.is_empty(), finding.verdict) {
        (true, Verdict::Same | Verdict::Consistent | Verdict::Contradiction) => {
            let words = format!("{}, but their signatures were not checked", finding.words);
            finding.ends(Verdict::Unknown, words)
        }
        _ => finding,
    }
}

pub(super) fn head(checkpoint: &Checkpoint) -> ClaimedHead {
    ClaimedHead {
        origin: checkpoint.origin().to_string(),
        size: checkpoint.size().get(),
        root: checkpoint.root().to_string(),
        seen: None,
    }
}

/// Parses a note; returns the checkpoint and those of `keys` that signed it.
fn read<'k>(note: &[u8], keys: &'k [VerifierKey]) -> Result<(Checkpoint, Vec<&'k VerifierKey>), String> {
    let note = Note::parse(note).map_err(|why| why.to_string())?;
    let by = match keys {
        [] => Vec::new(),
        keys => note.verify(keys).map_err(|why| why.to_string())?,
    };
    Ok((Checkpoint::parse_text(note.text()).map_err(|why| why.to_string())?, by))
}

fn related(
    mut finding: VerificationResult,
    older: &Checkpoint,
    newer: &Checkpoint,
    join: Join<'_>,
) -> VerificationResult {
    let sizes = (older.size(), newer.size());
    if sizes.0 == sizes.1 {
        return match older.root() == newer.root() {
            true => {
                finding.ok("trees", format!("both of size {}, one root", sizes.0));
                finding.ends(Verdict::Same, "the same tree")
            }
            false => {
                finding.failed("trees", format!("both of size {}, two roots", sizes.0));
                finding.ends(Verdict::Contradiction, "the log signed two trees of one size")
            }
        };
    }
    if sizes.0 == TreeSize::EMPTY {
        finding.ok("trees", "the older one is empty: it is the beginning of every tree");
        return finding.ends(Verdict::Consistent, "nothing was there yet");
    }
    match join {
        Join::Nothing => {
            finding.not_checked("consistency", format!("{} to {}: no proof is at hand", sizes.0, sizes.1));
            finding.ends(Verdict::Unknown, "checkpoints of two sizes need a proof to be compared")
        }
        Join::Proof(path) => by_proof(finding, older, newer, path),
        Join::Node { start, siblings } => by_node(finding, older, newer, start, siblings),
    }
}

fn by_proof(
    mut finding: VerificationResult,
    older: &Checkpoint,
    newer: &Checkpoint,
    path: &[Hash],
) -> VerificationResult {
    let sizes = (older.size(), newer.size());
    match consistency(sizes.0, sizes.1, older.root(), newer.root(), path) {
        Ok(()) => {
            finding.ok("consistency", format!("{} to {}, hashes: {}", sizes.0, sizes.1, path.len()));
            finding.ends(Verdict::Consistent, "the older tree is the beginning of the newer one")
        }
        // For a power of two the proof omits its first node, the older root: it cannot show a contradiction.
        Err(_) if sizes.0.get().is_power_of_two() => {
            finding.failed("consistency", "the proof does not lead from the one root to the other");
            finding.ends(Verdict::Wrong, "this proof joins them not; another one might")
        }
        Err(why) => match path.split_first() {
            Some((start, siblings)) => by_node(finding, older, newer, *start, siblings),
            None => {
                finding.failed("consistency", why.to_string());
                finding.ends(Verdict::Wrong, "this proof joins them not; another one might")
            }
        },
    }
}

fn by_node(
    mut finding: VerificationResult,
    older: &Checkpoint,
    newer: &Checkpoint,
    start: Hash,
    siblings: &[Hash],
) -> VerificationResult {
    let implied = implied_roots(older.size(), newer.size(), start, siblings);
    let is = |implied: RootHash, signed: RootHash| implied == signed;
    match implied {
        Ok((first, second)) if is(second, newer.root()) && is(first, older.root()) => {
            finding.ok("consistency", format!("{} to {}", older.size(), newer.size()));
            finding.ends(Verdict::Consistent, "the older tree is the beginning of the newer one")
        }
        Ok((first, second)) if is(second, newer.root()) => {
            finding.failed(
                "consistency",
                format!("the newer tree has the root {first} at size {}", older.size()),
            );
            finding.ends(Verdict::Contradiction, "the log signed two trees that no proof can join")
        }
        Ok(_) => {
            finding.failed("consistency", "the hashes do not lead to the newer root");
            finding.ends(Verdict::Wrong, "these hashes show nothing; others might")
        }
        Err(why) => {
            finding.failed("consistency", why.to_string());
            finding.ends(Verdict::Wrong, "these hashes show nothing; others might")
        }
    }
}
