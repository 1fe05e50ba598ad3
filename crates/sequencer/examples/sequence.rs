//! Starts a sequencer over a log in memory, and submits two statements: the policy, which is entry 0, and a note.
//!
//! `cargo run -p sequencer --example sequence`

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use sequencer::{
    HeadSigner, Limits, PinFile, RefuseOutdated, Sequencer, SequencerParts, SignFailed, Submission,
    SystemClock, TimeWindow,
};
use store::{CommittedHead, HeadSignature, Memory, NewEntry, SignatureKind};

/// A signer that shows what it would sign.
struct PrintingSigner;

#[async_trait]
impl HeadSigner for PrintingSigner {
    fn makes(&self, _: TreeSize) -> Vec<(SignatureKind, Vec<u8>)> {
        vec![(SignatureKind::Receipt, b"key".to_vec())]
    }

    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        println!("sign size {} with root {}", head.size, head.root);
        let bytes = Bytes::from(head.root.to_string());
        Ok(vec![HeadSignature { size: head.size, kind: SignatureKind::Receipt, kid: b"key".to_vec(), bytes }])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let sequencer = Sequencer::start(SequencerParts {
        origin: "log.example".into(),
        holder: "the example".into(),
        store: Arc::new(Memory::new()),
        signer: Arc::new(PrintingSigner),
        pin: Arc::new(PinFile::in_directory(folder.path())),
        witnesses: Arc::new(()),
        clock: Arc::new(SystemClock),
        redecide: Arc::new(RefuseOutdated),
        observer: Arc::new(()),
        limits: Limits::default(),
    })
    .await?;
    for (statement, is_policy) in [("a policy", true), ("a note", false)] {
        let placed = sequencer.submit(submission(statement, is_policy)).await?;
        println!("{statement} is entry {}", placed.index);
    }
    sequencer.stop().await;
    Ok(())
}

/// Returns a statement that was admitted under the policy at leaf 0.
fn submission(statement: &'static str, is_policy: bool) -> Submission {
    Submission {
        entry: NewEntry {
            digest: EntryDigest::of(statement.as_bytes()),
            twin: None,
            statement: Bytes::from_static(statement.as_bytes()),
            policy: LeafIndex::new(0),
            rule: "example".into(),
            facts: "{}".into(),
            guards: Vec::new(),
            collateral: Vec::new(),
        },
        valid: TimeWindow::ALWAYS,
        largest_tree: None,
        decided_under: LeafIndex::new(0),
        relied_absent: Vec::new(),
        relied_free: Vec::new(),
        side_data: Vec::new(),
        is_policy,
        corrects: None,
        effect: None,
    }
}
