//! Searches of a log's index, and accusations against it.

use std::collections::{BTreeMap, BTreeSet};

use lookup_tree::{
    BlindCode, HEAD_CONTENT_TYPE, HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunId,
};
use lookup_tree::{RunProof, RunSummary, TermKey, schedule};
use tlog::note::{LocalKey, NoteSigner};

use super::*;
use crate::index::*;

const AGENT: u8 = 4;
const SUBJECT: &str = "log.example/index";
/// The number of indexed statements.
const SIZE: u64 = 40;
/// The leaf that the index lists as erased.
const ERASED: u64 = 12;

/// A log of statements by five agents in turn, with an index.
struct IndexedLog {
    log: Log,
    index_key: SigningKey,
    statements: Vec<SignedStatement>,
}

impl IndexedLog {
    fn new() -> Self {
        let issuer = key(Algorithm::EdDsa);
        let statement = |leaf: u64| {
            let payload = format!("agent-{}", leaf % 5);
            let builder = StatementBuilder::new(payload).content_type("text/plain").kid("k").iss(ISS);
            builder.sub(&leaf.to_string()).sign(&issuer).unwrap()
        };
        let statements = (0..SIZE).map(statement).collect();
        Self { log: Log::new(), index_key: key(Algorithm::EdDsa), statements }
    }

    fn index(&self) -> TrustedIndex {
        TrustedIndex {
            iss: LOG_ISS.to_owned(),
            subject: SUBJECT.to_owned(),
            series: Hash::from_bytes([7; 32]),
            keys: vec![listed(&self.index_key)],
        }
    }

    fn trust(&self) -> TrustStore {
        TrustStore { logs: vec![self.log.trusted()], ..TrustStore::default() }
    }

    fn postings(&self) -> Vec<Posting> {
        let of_leaf = |leaf| match leaf {
            ERASED => Posting::blind(BlindCode::Erased, LeafIndex::new(leaf)),
            _ => Posting { key: agent(leaf % 5).key(), leaf: LeafIndex::new(leaf) },
        };
        let mut postings: Vec<_> = (0..SIZE).map(of_leaf).collect();
        postings.sort_unstable();
        postings
    }

    fn head(&self, postings: &[Posting]) -> IndexHead {
        IndexHead {
            series: self.index().series,
            size: TreeSize::new(SIZE),
            log_root: CompactRange::empty().grow(&self.leaves(&[])).root(),
            horizon: LeafIndex::new(20),
            runs: vec![HeadRun { id: RunId::TAIL, summary: RunSummary::of(postings).unwrap() }],
        }
    }

    fn builder(&self, head: &IndexHead) -> StatementBuilder {
        let builder = StatementBuilder::new(head.encode()).content_type(HEAD_CONTENT_TYPE);
        builder.kid(self.index_key.public_key().thumbprint()).iss(LOG_ISS).sub(SUBJECT)
    }

    fn sign(&self, head: &IndexHead) -> SignedStatement {
        self.builder(head).sign(&self.index_key).unwrap()
    }

    fn leaves(&self, heads: &[SignedStatement]) -> Vec<LeafHash> {
        self.statements.iter().chain(heads).map(|statement| statement.digest().leaf_hash()).collect()
    }

    /// Registers heads after the statements, in order.
    fn register(&self, heads: &[SignedStatement]) -> Vec<IndexHeadEvidence> {
        let leaves = self.leaves(heads);
        let growth = CompactRange::empty().grow(&leaves);
        let root =
            self.log.header(TreeSize::new(leaves.len() as u64)).sign_root(&self.log.key, &growth.root());
        let signed = root.unwrap();
        let evidence = |(nth, head): (usize, &SignedStatement)| {
            let leaf = LeafIndex::new(SIZE + nth as u64);
            let receipt = signed.inclusion_receipt(leaf, &growth.path(leaf).unwrap());
            IndexHeadEvidence { statement: head.bytes().to_vec(), receipt }
        };
        heads.iter().enumerate().map(evidence).collect()
    }

    fn registered(&self, head: &IndexHead) -> IndexHeadEvidence {
        self.register(&[self.sign(head)]).remove(0)
    }

    fn search(&self, leaves: LeafRange) -> SearchProof {
        let postings = self.postings();
        let head = self.head(&postings);
        let question = IndexQuestion::new([agent(2).key()], leaves).unwrap();
        let proofs = BTreeMap::from([(RunId::TAIL, prove(&postings, question))]);
        SearchProof { head: self.registered(&head), terms: vec![agent(2)], leaves, proofs }
    }

    fn verify(&self, search: &SearchProof) -> SearchVerdict {
        let search = SearchProof::decode(&search.encode()).unwrap();
        search.verify(&self.index(), &CheckpointEvidence::default(), &self.trust(), NOW)
    }

    /// Says what an index with these postings says about a term of the statement at a leaf.
    fn evidence(&self, postings: &[Posting], term: SearchTerm, leaf: u64) -> PostingEvidence {
        let leaves = LeafRange::new(leaf, leaf + 1);
        let leaf = LeafIndex::new(leaf);
        PostingEvidence {
            head: self.registered(&self.head(postings)),
            leaf,
            statement: self.statements[leaf.get() as usize].bytes().to_vec(),
            payload: None,
            path: CompactRange::empty().grow(&self.leaves(&[])).path(leaf).unwrap(),
            proof: prove(postings, IndexQuestion::new([term.key()], leaves).unwrap()),
            term,
        }
    }

    fn check(&self, accusation: &IndexAccusation) -> Result<(), AccusationRefused> {
        let accusation = IndexAccusation::decode(&accusation.encode()).unwrap();
        let terms = |statement: &SignedStatement, _: Option<&[u8]>| {
            Some(BTreeSet::from([TermKey::of(AGENT, statement.payload()?)]))
        };
        accusation.check(&self.index(), &self.trust(), &terms, NOW)
    }
}

fn agent(number: u64) -> SearchTerm {
    SearchTerm { kind: AGENT, value: format!("agent-{number}").into_bytes() }
}

fn prove(postings: &[Posting], question: IndexQuestion) -> Vec<u8> {
    let run = schedule(TreeSize::new(SIZE))[0];
    let question = question.for_run(&run, &RunSummary::of(postings).unwrap()).unwrap();
    RunProof::prove(postings, &question).unwrap().encode()
}

#[track_caller]
fn assert_refused(verdict: &SearchVerdict, outcome: VerificationOutcome, code: Code) {
    assert_eq!((verdict.outcome, verdict.reason), (outcome, Some(code)), "{verdict:#?}");
    assert_eq!(verdict.findings, None);
}

#[test]
fn a_search_names_every_leaf_with_the_term_and_those_that_may_have_it() {
    let log = IndexedLog::new();
    let verdict = log.verify(&log.search(LeafRange::new(5, 30)));
    assert_eq!((verdict.outcome, verdict.reason), (VerificationOutcome::Verified, None), "{verdict:#?}");
    let findings = verdict.findings.unwrap();
    let leaves: Vec<u64> = findings.leaves[&agent(2)].iter().map(|leaf| leaf.get()).collect();
    assert_eq!(leaves, [7, 17, 22, 27]);
    assert_eq!(findings.blind, [(LeafIndex::new(ERASED), BlindCode::Erased)]);
    let head = verdict.head.unwrap();
    assert_eq!((head.leaf.get(), head.head.size.get(), head.tree.size.get()), (SIZE, SIZE, SIZE + 1));
}

#[test]
fn a_head_counts_only_under_a_key_of_the_index_and_a_receipt_of_the_log() {
    let log = IndexedLog::new();
    let sound = log.search(LeafRange::new(0, SIZE));
    let stranger = key(Algorithm::EdDsa);
    let head = log.head(&log.postings());
    let by_stranger = log.builder(&head).sign(&stranger).unwrap();
    let mut search = SearchProof { head: log.register(&[by_stranger]).remove(0), ..sound.clone() };
    assert_refused(&log.verify(&search), VerificationOutcome::Failed, Code::IssuerSignatureInvalid);
    let unknown = log.builder(&head).kid("unknown").sign(&stranger).unwrap();
    search.head = log.register(&[unknown]).remove(0);
    assert_refused(&log.verify(&search), VerificationOutcome::NotVerified, Code::UnknownIssuerKey);
    search.head = IndexHeadEvidence {
        receipt: sound.head.receipt.clone(),
        ..log.registered(&IndexHead { horizon: LeafIndex::new(1), ..head })
    };
    assert_refused(&log.verify(&search), VerificationOutcome::Failed, Code::ReceiptRootMismatch);
    search.head.statement = b"no statement".to_vec();
    assert_refused(&log.verify(&search), VerificationOutcome::Failed, Code::MalformedStatement);
    let other = IndexedLog { log: Log::new(), ..log };
    assert_ne!(other.verify(&sound).outcome, VerificationOutcome::Verified);
}

#[test]
fn only_a_head_of_this_index_counts() {
    let log = IndexedLog::new();
    let sound = log.search(LeafRange::new(0, SIZE));
    let head = log.head(&log.postings());
    let refused = |statement: StatementBuilder, code| {
        let statement = statement.sign(&log.index_key).unwrap();
        let search = SearchProof { head: log.register(&[statement]).remove(0), ..sound.clone() };
        assert_refused(&log.verify(&search), VerificationOutcome::Failed, code);
    };
    let of = |head: IndexHead| log.builder(&head);
    refused(of(head.clone()).iss(ISS), Code::IndexHeadMismatch);
    refused(of(head.clone()).sub("log.example"), Code::IndexHeadMismatch);
    refused(of(head.clone()).content_type("application/cbor"), Code::IndexHeadMismatch);
    refused(of(IndexHead { series: Hash::from_bytes([8; 32]), ..head.clone() }), Code::IndexHeadMismatch);
    refused(of(IndexHead { size: TreeSize::new(SIZE + 1), ..head.clone() }), Code::IndexHeadMismatch);
    refused(of(IndexHead { runs: vec![], ..head }), Code::IndexRunsWrong);
    let builder = StatementBuilder::new("no head").content_type(HEAD_CONTENT_TYPE);
    refused(
        builder.kid(log.index_key.public_key().thumbprint()).iss(LOG_ISS).sub(SUBJECT),
        Code::MalformedIndexHead,
    );
}

#[test]
fn an_answer_that_leaves_something_out_is_refused() {
    let log = IndexedLog::new();
    let sound = log.search(LeafRange::new(0, SIZE));
    let refused = |search: &SearchProof, code| {
        assert_refused(&log.verify(search), VerificationOutcome::Failed, code);
    };
    refused(&SearchProof { proofs: BTreeMap::new(), ..sound.clone() }, Code::IndexProofInvalid);
    refused(&SearchProof { terms: vec![agent(4)], ..sound.clone() }, Code::IndexProofInvalid);
    refused(&SearchProof { leaves: LeafRange::new(0, SIZE + 1), ..sound.clone() }, Code::IndexBeyondHead);
    let without: Vec<_> = log.postings().into_iter().filter(|posting| posting.leaf.get() != 7).collect();
    let question = IndexQuestion::new([agent(2).key()], sound.leaves).unwrap();
    let proofs = BTreeMap::from([(RunId::TAIL, prove(&without, question))]);
    refused(&SearchProof { proofs, ..sound.clone() }, Code::IndexProofInvalid);
    refused(
        &SearchProof { proofs: BTreeMap::from([(RunId::TAIL, vec![0])]), ..sound },
        Code::IndexProofInvalid,
    );
}

#[test]
fn a_posting_that_the_index_omits_or_adds_is_shown_by_a_file_alone() {
    let log = IndexedLog::new();
    let sound = log.postings();
    let omitting: Vec<_> = sound.iter().copied().filter(|posting| posting.leaf.get() != 7).collect();
    let mut adding = sound.clone();
    adding.push(Posting { key: agent(2).key(), leaf: LeafIndex::new(8) });
    adding.sort_unstable();

    assert_eq!(log.check(&IndexAccusation::Omits(log.evidence(&omitting, agent(2), 7))), Ok(()));
    assert_eq!(log.check(&IndexAccusation::Adds(log.evidence(&adding, agent(2), 8))), Ok(()));

    for evidence in [log.evidence(&sound, agent(2), 7), log.evidence(&sound, agent(2), 8)] {
        assert_eq!(log.check(&IndexAccusation::Omits(evidence.clone())), Err(AccusationRefused::Agrees));
        assert_eq!(log.check(&IndexAccusation::Adds(evidence)), Err(AccusationRefused::Agrees));
    }
    let erased = IndexAccusation::Omits(log.evidence(&sound, agent(2), ERASED));
    assert_eq!(log.check(&erased), Err(AccusationRefused::Blind(LeafIndex::new(ERASED))));
}

#[test]
fn a_false_accusation_of_a_log_is_refused() {
    let log = IndexedLog::new();
    let omitting: Vec<_> = log.postings().into_iter().filter(|posting| posting.leaf.get() != 7).collect();
    let shown = log.evidence(&omitting, agent(2), 7);
    let check = |evidence: PostingEvidence| log.check(&IndexAccusation::Omits(evidence)).unwrap_err();
    let forged = log.statements[17].bytes().to_vec();
    let elsewhere = check(PostingEvidence { statement: forged, ..shown.clone() });
    assert!(matches!(elsewhere, AccusationRefused::Inclusion { .. }));
    let other_leaf = check(PostingEvidence { leaf: LeafIndex::new(8), ..shown.clone() });
    assert!(matches!(other_leaf, AccusationRefused::Inclusion { .. }));
    let other_proof = log.evidence(&log.postings(), agent(2), 7).proof;
    assert!(matches!(
        check(PostingEvidence { proof: other_proof, ..shown.clone() }),
        AccusationRefused::Proof(_)
    ));
    let other_payload = check(PostingEvidence { payload: Some(b"agent-3".to_vec()), ..shown.clone() });
    assert!(matches!(other_payload, AccusationRefused::Statement(_)));
    let unsigned = log.builder(&log.head(&omitting)).sign(&key(Algorithm::EdDsa)).unwrap();
    let unsigned = check(PostingEvidence { head: log.register(&[unsigned]).remove(0), ..shown });
    assert!(matches!(unsigned, AccusationRefused::Head(_)));
}

#[test]
fn heads_that_break_a_rule_of_their_form_are_shown_by_a_file_alone() {
    let log = IndexedLog::new();
    let head = log.head(&log.postings());
    let check = |fault| log.check(&IndexAccusation::Form(fault));
    let kept = |fault| assert!(matches!(check(fault), Err(AccusationRefused::RuleKept(_))));

    let no_runs = IndexHead { runs: vec![], ..head.clone() };
    assert_eq!(check(IndexFormFault::WrongRuns(log.registered(&no_runs))), Ok(()));
    kept(IndexFormFault::WrongRuns(log.registered(&head)));

    let back = IndexHead { horizon: LeafIndex::new(19), ..head.clone() };
    let [earlier, later] = log.register(&[log.sign(&head), log.sign(&back)]).try_into().unwrap();
    assert_eq!(check(IndexFormFault::HorizonBack { earlier: earlier.clone(), later: later.clone() }), Ok(()));
    kept(IndexFormFault::HorizonBack { earlier: later.clone(), later: earlier.clone() });
    kept(IndexFormFault::TwoHeads(earlier.clone(), later));

    let other = IndexHead { log_root: RootHash::from_bytes([9; 32]), ..head.clone() };
    let [one, two] = log.register(&[log.sign(&head), log.sign(&other)]).try_into().unwrap();
    assert_eq!(check(IndexFormFault::TwoHeads(one.clone(), two.clone())), Ok(()));
    kept(IndexFormFault::TwoHeads(one.clone(), one.clone()));

    let path = consistency_path(&log.leaves(&[log.sign(&head), log.sign(&other)]));
    let other_root = |head, root| IndexFormFault::OtherLogRoot { head, root, path: path.clone() };
    assert_eq!(check(other_root(two.clone(), head.log_root)), Ok(()));
    kept(other_root(one, head.log_root));
    assert!(matches!(check(other_root(two, other.log_root)), Err(AccusationRefused::Proof(_))));
}

/// The path from the tree of the indexed leaves to that of all leaves.
fn consistency_path(leaves: &[LeafHash]) -> Vec<Hash> {
    let plan = merkle::proof::consistency(TreeSize::new(SIZE), TreeSize::new(leaves.len() as u64)).unwrap();
    let hash = |node: merkle::NodeId| {
        let covered = (node.index << node.level) as usize..((node.index + 1) << node.level) as usize;
        Ok::<_, std::convert::Infallible>(Hash::from(CompactRange::empty().grow(&leaves[covered]).root()))
    };
    plan.fold(hash).unwrap()
}

#[test]
fn files_are_read_in_one_form_only() {
    let log = IndexedLog::new();
    let search = log.search(LeafRange::new(0, SIZE)).encode();
    assert!(matches!(SearchProof::decode(&search[1..]), Err(IndexFileError::Cbor(_))));
    assert_eq!(SearchProof::decode(&[0x80]), Err(IndexFileError::Form("a search proof")));
    let long_head = [&[0x98, 4][..], &search[1..]].concat();
    assert_eq!(SearchProof::decode(&long_head), Err(IndexFileError::NotDeterministic));
    let mut renamed =
        IndexAccusation::Form(IndexFormFault::WrongRuns(log.registered(&log.head(&[])))).encode();
    assert_eq!(renamed[2..12], *b"index-form");
    renamed[11] = b'n';
    assert!(matches!(IndexAccusation::decode(&renamed), Err(IndexFileError::Form(_))));
}

#[test]
fn a_file_with_an_accusation_has_one_encoding() {
    let log = IndexedLog::new();
    let head = log.registered(&log.head(&log.postings()));
    let policy = IndexPolicyEvidence { statement: b"policy".to_vec(), receipt: b"receipt".to_vec() };
    let accusation = IndexAccusation::Form(IndexFormFault::TwoHeads(head.clone(), head));
    let file = IndexAccusationFile { policy, accusation };
    let bytes = file.encode();
    assert!(IndexAccusationFile::is_start_of(&bytes));
    assert_eq!(IndexAccusationFile::decode(&bytes), Ok(file.clone()));
    assert!(IndexAccusationFile::decode(&file.accusation.encode()).is_err());
    assert!(IndexAccusationFile::decode(&bytes[..bytes.len() - 1]).is_err());
    assert!(IndexAccusation::decode(&bytes).is_err());
}

#[test]
fn an_attestation_names_log_size_and_head_and_has_one_spelling() {
    let log = IndexedLog::new();
    let head = log.head(&log.postings());
    let secret = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let signer = LocalKey::new("monitor.example".parse().unwrap(), secret.clone()).unwrap();
    let attestation = IndexAttestation::of("log.example".parse().unwrap(), &head);
    let note = attestation.sign(&signer).unwrap();
    let (read, read_note) = IndexAttestation::read(note.to_string().as_bytes()).unwrap();
    assert_eq!((read.size.get(), read.head), (SIZE, head.digest()));
    assert_eq!(read, attestation);
    assert!(read_note.verify(&[signer.key().clone()]).is_ok());

    let text = attestation.to_string();
    let size = format!("\n{SIZE}\n");
    for (from, to) in [
        ("index/v1", "index/v2"),
        (size.as_str(), "\n040\n"),
        (size.as_str(), "\n-1\n"),
        ("=\n", "\n"),
        ("=\n", "=\n\n"),
    ] {
        assert!(text.replace(from, to).parse::<IndexAttestation>().is_err(), "{to:?} for {from:?}");
    }
    let witness = LocalKey::cosigner("witness.example".parse().unwrap(), secret).unwrap();
    assert!(attestation.sign(&witness).is_err());
}
