//! Proofs of one run: sound ones, and one for each reason to refuse.

use data_encoding::HEXLOWER;
use lookup_tree::{IndexQuestion, Posting, PostingPrefix, ProofPart, ProofRefused};
use lookup_tree::{RunId, RunProof, RunQuestion, RunSummary, ScheduledRun};
use merkle::Hash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::vectors::{ByteEdit, DocumentEdit};

use super::postings::{PostingSource, RunSource, hex, posting};
use super::{edited, edited_bytes, range, read, unhex};
use crate::support::{agent, hash_of_part};

/// A run, a question about it, and how the proof differs from an honest one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofCase {
    run: RunSource,
    run_leaves: (u64, u64),
    /// Numbers of the agents in the question.
    agents: Vec<u64>,
    leaves: (u64, u64),
    #[serde(default)]
    made_for: MadeFor,
    /// Edits of the proof's tree.
    #[serde(default)]
    tree: Vec<DocumentEdit>,
    /// The encoded proof in hexadecimal, instead of one that is made.
    proof: Option<String>,
    /// Edits of the encoded proof.
    #[serde(default)]
    bytes: Vec<ByteEdit>,
    #[serde(default)]
    root: RootOf,
}

/// What the proof was made for, where this differs from the question.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MadeFor {
    run: Option<RunSource>,
    agents: Option<Vec<u64>>,
    leaves: Option<(u64, u64)>,
    /// The log takes no account of its blind postings.
    #[serde(default)]
    without_blind: bool,
}

/// The root that the reader of a proof expects.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RootOf {
    #[default]
    Run,
    /// That of the tree in the proof, whether it is allowed or not.
    Tree,
    /// That of another run.
    Of(RunSource),
}

/// A part of a proof.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum PartDocument {
    Hidden(String),
    Bucket(Vec<PostingSource>),
    Whole(Vec<PostingSource>),
    /// An inner node; `prefix` is a posting that begins with it.
    Inner {
        depth: u8,
        prefix: String,
        left: Box<PartDocument>,
        right: Box<PartDocument>,
    },
}

/// Returns a question and a proof with the decision about it.
pub fn proof(case: &ProofCase) -> Value {
    let summary = case.run.summary();
    let root = case.expected_root(summary.root);
    let proof = edited_bytes(case.proof(), &case.bytes);
    let question = case.question(&case.agents, case.leaves, &summary);
    let (decided, found) = decide(&proof, &question, root);
    json!({
        "keys": case.agents.iter().map(|number| agent(*number).to_string()).collect::<Vec<_>>(),
        "leaves": case.leaves,
        "run_leaves": case.run_leaves,
        "blind": summary.blind,
        "root": root.to_string(),
        "proof": HEXLOWER.encode(&proof),
        "expected": decided,
        "found": found.map(|found| found.iter().map(hex).collect::<Vec<_>>()),
    })
}

fn decide(proof: &[u8], question: &RunQuestion, root: Hash) -> (&'static str, Option<Vec<Posting>>) {
    match RunProof::decode(proof).map(|proof| proof.verify(question, root)) {
        Err(_) => ("malformed", None),
        Ok(Err(refused)) => (name(&refused), None),
        Ok(Ok(found)) => ("accept", Some(found)),
    }
}

impl ProofCase {
    fn expected_root(&self, root_of_run: Hash) -> Hash {
        match &self.root {
            RootOf::Run => root_of_run,
            RootOf::Tree => hash_of_part(&self.tree()),
            RootOf::Of(other) => other.summary().root,
        }
    }

    /// Returns the encoded proof.
    fn proof(&self) -> Vec<u8> {
        match &self.proof {
            Some(hex) => unhex(hex),
            None => RunProof { tree: self.tree() }.encode(),
        }
    }

    /// Returns the tree of an honest proof after its edits.
    fn tree(&self) -> ProofPart {
        let MadeFor { run, agents, leaves, without_blind } = &self.made_for;
        let run = run.as_ref().unwrap_or(&self.run);
        let mut summary = run.summary();
        if *without_blind {
            summary.blind = 0;
        }
        let agents = agents.as_ref().unwrap_or(&self.agents);
        let question = self.question(agents, leaves.unwrap_or(self.leaves), &summary);
        let Ok(proof) = RunProof::prove(&run.postings()[..], &question);
        let tree = edited(json!(PartDocument::of(&proof.tree)), &self.tree);
        read::<PartDocument>(&tree).part()
    }

    fn question(&self, agents: &[u64], leaves: (u64, u64), summary: &RunSummary) -> RunQuestion {
        let run = ScheduledRun { id: RunId::TAIL, leaves: range(self.run_leaves) };
        let keys = agents.iter().map(|number| agent(*number));
        IndexQuestion::new(keys, range(leaves)).unwrap().for_run(&run, summary).unwrap()
    }
}

impl PartDocument {
    fn of(part: &ProofPart) -> Self {
        let list = |postings: &[Posting]| postings.iter().map(PostingSource::of).collect();
        match part {
            ProofPart::Hidden(hash) => Self::Hidden(hash.to_string()),
            ProofPart::Bucket(postings) => Self::Bucket(list(postings)),
            ProofPart::Whole(postings) => Self::Whole(list(postings)),
            ProofPart::Inner { prefix, left, right } => Self::Inner {
                depth: prefix.depth(),
                prefix: hex(&prefix.first()),
                left: Box::new(Self::of(left)),
                right: Box::new(Self::of(right)),
            },
        }
    }

    fn part(&self) -> ProofPart {
        let list = |postings: &[PostingSource]| postings.iter().flat_map(PostingSource::postings).collect();
        match self {
            Self::Hidden(hash) => ProofPart::Hidden(hash.parse().unwrap()),
            Self::Bucket(postings) => ProofPart::Bucket(list(postings)),
            Self::Whole(postings) => ProofPart::Whole(list(postings)),
            Self::Inner { depth, prefix, left, right } => ProofPart::Inner {
                prefix: PostingPrefix::of(posting(prefix), *depth),
                left: Box::new(left.part()),
                right: Box::new(right.part()),
            },
        }
    }
}

fn name(refused: &ProofRefused) -> &'static str {
    match refused {
        ProofRefused::HiddenMeetsQuestion(_) => "hidden-meets-question",
        ProofRefused::PrefixOutsidePlace(_) => "prefix-outside-place",
        ProofRefused::PostingOutsidePlace(_) => "posting-outside-place",
        ProofRefused::OutOfOrder(_) => "out-of-order",
        ProofRefused::BucketTooLarge(_) => "bucket-too-large",
        ProofRefused::WholeTooSmall(_) => "whole-too-small",
        ProofRefused::WholeOutsideQuestion(_) => "whole-outside-question",
        ProofRefused::RootMismatch { .. } => "root-mismatch",
    }
}
