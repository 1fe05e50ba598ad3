//! Trees of the log that contradict each other, for the page of alarms: the pin and the database, or a witness and the
//! database.
//!
//! What is shown is what this process knows. Signatures are verified with the log's checkpoint key and the keys of its
//! witnesses.
//!
//! Not here: what monitors found, which they do not report to the log, and findings of the storage check (`fsck`).

use explorer::{SignatureState, TreeConflict, TreeView};
use merkle::{RootHash, TreeSize};
use sequencer::{Halt, Role};
use store::{SignatureKind, StoreError};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{Note, SignatureLine};

use crate::log::state::Log;
use crate::time::rfc3339;
use crate::witnessing::{WitnessContradiction, with_cosignatures};

/// Name of the time at which a tree of the database was committed.
const COMMITTED: &str = "Committed";
/// Name of the time at which a witness reported a tree.
const REPORTED: &str = "Reported";
/// Name of the time of a pin, which has none.
const SIGNED: &str = "Signed";

/// Reads the trees that contradict each other.
///
/// # Errors
/// A [`StoreError`] if the database does not answer.
pub async fn read(log: &Log) -> Result<Vec<TreeConflict>, StoreError> {
    let halt = match &log.sequencer.status().borrow().role {
        Role::Halted(halt) => Some(halt.clone()),
        _ => None,
    };
    let keys = NoteKeys::of(log);
    let mut conflicts = Vec::new();
    if let Some((size, root)) = halt.as_ref().and_then(pinned) {
        let report = "The newest head that this log may have signed, by its pin, is not in the database.";
        let trees = [keys.in_pin(log, size, root).await?, keys.in_database(log, size).await?];
        conflicts.push(TreeConflict { report: report.to_owned(), trees, proven: false });
    }
    for contradiction in log.witnessing.contradictions() {
        conflicts.push(keys.with_witness(log, &contradiction).await?);
    }
    Ok(conflicts)
}

/// The pinned tree that the database lacks, if sequencing stopped for that: its size, and its root where it is known.
fn pinned(halt: &Halt) -> Option<(TreeSize, Option<RootHash>)> {
    match halt {
        Halt::DatabaseDisagrees { size, signed, .. } => Some((*size, Some(*signed))),
        Halt::DatabaseBehind { signed, .. } => Some((*signed, None)),
        _ => None,
    }
}

/// The keys that verify the signatures on a checkpoint.
struct NoteKeys {
    log: Option<VerifierKey>,
    witnesses: Vec<VerifierKey>,
}

impl NoteKeys {
    fn of(log: &Log) -> Self {
        let statuses = log.witnessing.statuses();
        Self {
            log: log.identity.checkpoint_key.parse().ok(),
            witnesses: statuses.witnesses.iter().filter_map(|witness| witness.key.parse().ok()).collect(),
        }
    }

    /// The tree that a witness reported, next to the one in the database.
    async fn with_witness(
        &self,
        log: &Log,
        contradiction: &WitnessContradiction,
    ) -> Result<TreeConflict, StoreError> {
        let WitnessContradiction { witness, size, .. } = contradiction;
        let database = self.in_database(log, *size).await?;
        let reported = self.reported_by(log, contradiction);
        let proven = reported.size == database.size
            && reported.root != database.root
            && [&reported, &database].iter().all(|tree| is_signed_by_log(tree));
        let report =
            format!("The witness {witness} has seen a tree of size {size} that is not in the database.");
        Ok(TreeConflict { report, trees: [reported, database], proven })
    }

    /// The tree that a witness reported: its checkpoint, if that is of this log, or else the size alone.
    fn reported_by(&self, log: &Log, contradiction: &WitnessContradiction) -> TreeView {
        let WitnessContradiction { witness, key, size, at, checkpoint } = contradiction;
        let note = checkpoint.as_ref();
        let reported = note.and_then(|note| Some((note, Checkpoint::parse_text(note.text()).ok()?)));
        let reported = reported.filter(|(_, checkpoint)| checkpoint.origin().as_str() == log.identity.origin);
        TreeView {
            source: format!("Witness {witness}"),
            size: reported.as_ref().map_or(*size, |(_, checkpoint)| checkpoint.size()).get(),
            root: reported.as_ref().map(|(_, checkpoint)| checkpoint.root().to_string()),
            time: (REPORTED, rfc3339(*at)),
            signatures: reported
                .as_ref()
                .map(|(note, _)| self.signatures(note, Some(key)))
                .unwrap_or_default(),
            note: reported.map(|(note, _)| note.to_string()),
        }
    }

    /// The tree of the pin, with the stored checkpoint if that has the same root.
    async fn in_pin(
        &self,
        log: &Log,
        size: TreeSize,
        root: Option<RootHash>,
    ) -> Result<TreeView, StoreError> {
        let note = match root {
            Some(root) => stored_note(log, size, root).await?,
            None => None,
        };
        Ok(TreeView {
            source: "Pin".to_owned(),
            size: size.get(),
            root: root.map(|root| root.to_string()),
            time: (SIGNED, None),
            signatures: note.as_ref().map(|note| self.signatures(note, None)).unwrap_or_default(),
            note: note.map(|note| note.to_string()),
        })
    }

    /// The tree of this size in the database, or else the newest signed one there.
    async fn in_database(&self, log: &Log, size: TreeSize) -> Result<TreeView, StoreError> {
        let head = match log.store.head_of_size(size).await? {
            Some(head) => Some(head),
            None => log.store.newest_signed(SignatureKind::Checkpoint).await?.map(|signed| signed.head),
        };
        let note = match &head {
            Some(head) => stored_note(log, head.size, head.root).await?,
            None => None,
        };
        Ok(TreeView {
            source: "Database".to_owned(),
            size: head.as_ref().map_or(0, |head| head.size.get()),
            root: head.as_ref().map(|head| head.root.to_string()),
            time: (COMMITTED, head.and_then(|head| rfc3339(head.at))),
            signatures: note.as_ref().map(|note| self.signatures(note, None)).unwrap_or_default(),
            note: note.map(|note| note.to_string()),
        })
    }

    fn signatures(&self, note: &Note, witness: Option<&VerifierKey>) -> Vec<(String, SignatureState)> {
        let state = |line: &SignatureLine| {
            (format!("{}+{}", line.name(), line.id()), self.state(note, line, witness))
        };
        note.signatures().iter().map(state).collect()
    }

    fn state(&self, note: &Note, line: &SignatureLine, witness: Option<&VerifierKey>) -> SignatureState {
        let Ok(alone) = Note::from_parts(note.text(), vec![line.clone()]) else {
            return SignatureState::Wrong;
        };
        if let Some(key) = self.log.as_ref().filter(|key| line.is_by(key)) {
            return match alone.verify(std::slice::from_ref(key)) {
                Ok(_) => SignatureState::OfThisLog,
                Err(_) => SignatureState::Wrong,
            };
        }
        let key = self.witnesses.iter().chain(witness).find(|key| line.is_by(key));
        match key.map(|key| cosignature::verified(&alone, key)) {
            Some(Some(at)) => SignatureState::OfWitness(rfc3339(at)),
            Some(None) => SignatureState::Wrong,
            None => SignatureState::UnknownKey,
        }
    }
}

/// Reads the stored checkpoint of this size; `None` if there is none with this root, or it is damaged.
async fn stored_note(log: &Log, size: TreeSize, root: RootHash) -> Result<Option<Note>, StoreError> {
    let note = match with_cosignatures(&*log.store, size).await {
        Err(StoreError::Damaged(why)) => {
            tracing::error!(why, "a checkpoint that contradicts another tree is damaged");
            None
        }
        read => read?,
    };
    let has_root = |note: &Note| Checkpoint::parse_text(note.text()).is_ok_and(|found| found.root() == root);
    Ok(note.filter(has_root))
}

fn is_signed_by_log(tree: &TreeView) -> bool {
    tree.signatures.iter().any(|(_, state)| *state == SignatureState::OfThisLog)
}
