//! A log with an index, and the answers that it gives.

use std::collections::BTreeMap;

use bundle::{AdmittedBy, BundleClaims, BundleEntry, BundleProof, EvidenceBundle, VERSION};
use lookup_tree::{
    BlindCode, HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunId, RunProof, RunSummary, schedule,
};
use merkle::{CompactRange, LeafHash, LeafIndex, RootHash, TreeGrowth, TreeSize};
use registration::erasure::{self, NewErasure};
use registration::policy::index_table_digest;
use registration::{LookupKind, Policy, SearchValues, index_head, policy_statement};
use scitt::{CoseKey, ReceiptHeader, SignedStatement, Signer, SigningKey, StatementBuilder};
use search_evidence::{AnswerReader, AnswerVerdict, ErasedEntry, SearchAnswer, SearchQuestion};
use testkit::{ISSUER, KID, LOG_ISS, NOW, ORIGIN};
use tlog::checkpoint::Checkpoint;
use tlog::note::{LocalKey, NoteSigner};
use verifier::index::{IndexHeadEvidence, IndexPolicyEvidence, SearchProof, SearchTerm};
use verifier::{TrustStore, TrustedLog};

/// The number of indexed leaves: the policy, entries, and an erasure statement.
pub const SIZE: u64 = 7;
/// The leaf of the head.
pub const HEAD: u64 = SIZE;
/// The leaf of an entry that was erased.
pub const ERASED: u64 = 3;
/// The leaf of the statement that erased it.
pub const ERASURE: u64 = 6;
/// The leaf of an entry whose payload the log does not serve.
pub const UNSERVED: u64 = 4;
/// The leaf of an entry after the head.
pub const LATER: u64 = 8;

/// A log with an index.
pub struct TestLog {
    /// Statements in the order of their leaves.
    pub statements: Vec<SignedStatement>,
    /// The postings to which the head commits.
    postings: Vec<Posting>,
    growth: TreeGrowth,
}

impl TestLog {
    /// A log whose index is right.
    pub fn honest() -> Self {
        Self::with_index(|_| ())
    }

    /// A log whose head commits to changed postings.
    pub fn with_index(change: impl FnOnce(&mut Vec<Posting>)) -> Self {
        let mut statements = indexed();
        let mut postings: Vec<Posting> =
            (0..SIZE).flat_map(|leaf| postings_of(leaf, &statements[leaf as usize])).collect();
        change(&mut postings);
        postings.sort_unstable();
        statements.push(head_statement(&head(&postings, &statements)));
        statements.push(about("a", 8));
        let growth = CompactRange::empty().grow(&leaf_hashes(&statements));
        Self { statements, postings, growth }
    }

    pub fn size(&self) -> u64 {
        self.statements.len() as u64
    }

    /// The head of the index.
    pub fn head(&self) -> IndexHead {
        IndexHead::decode(self.statements[HEAD as usize].payload().unwrap()).unwrap()
    }

    /// The checkpoint of all leaves.
    fn checkpoint(&self) -> String {
        let size = TreeSize::new(self.size());
        let checkpoint = Checkpoint::new(ORIGIN.parse().unwrap(), size, self.growth.root()).unwrap();
        checkpoint.sign(&checkpoint_key()).unwrap().to_string()
    }

    pub fn path(&self, leaf: u64) -> Vec<merkle::Hash> {
        self.growth.path(LeafIndex::new(leaf)).unwrap()
    }

    pub fn receipt(&self, leaf: u64) -> Vec<u8> {
        let key = receipt_key();
        let header = ReceiptHeader {
            alg: key.algorithm(),
            kid: key.public_key().thumbprint().to_vec(),
            iss: LOG_ISS.to_owned(),
            sub: ORIGIN.to_owned(),
            iat: NOW - 60,
            tree_size: TreeSize::new(self.size()),
        };
        let signed = header.sign_root(&key, &self.growth.root()).unwrap();
        signed.inclusion_receipt(LeafIndex::new(leaf), &self.path(leaf))
    }

    /// An entry with its proofs.
    pub fn entry(&self, leaf: u64) -> BundleEntry {
        BundleEntry {
            admitted_by: (leaf > 0).then(|| AdmittedBy { policy: 0, rule: "application/json".to_owned() }),
            payload: None,
            proof: BundleProof { index: leaf, path: self.path(leaf) },
            receipt: self.receipt(leaf),
            statement: self.statements[leaf as usize].bytes().to_vec(),
        }
    }

    pub fn head_evidence(&self) -> IndexHeadEvidence {
        let statement = self.statements[HEAD as usize].bytes().to_vec();
        IndexHeadEvidence { statement, receipt: self.receipt(HEAD) }
    }

    pub fn policy_evidence(&self) -> IndexPolicyEvidence {
        let statement = self.statements[0].bytes().to_vec();
        IndexPolicyEvidence { statement, receipt: self.receipt(0) }
    }

    /// The encoded proof of the tail for these terms and leaves.
    pub fn run_proof(&self, terms: &[SearchTerm], leaves: LeafRange) -> Vec<u8> {
        let run = schedule(TreeSize::new(SIZE))[0];
        let question = IndexQuestion::new(terms.iter().map(SearchTerm::key), leaves).unwrap();
        let question = question.for_run(&run, &RunSummary::of(&self.postings).unwrap()).unwrap();
        RunProof::prove(&self.postings[..], &question).unwrap().encode()
    }

    /// A page that proves the lists of these terms.
    pub fn page(&self, terms: &[SearchTerm], leaves: LeafRange) -> SearchProof {
        let proofs = BTreeMap::from([(RunId::TAIL, self.run_proof(terms, leaves))]);
        SearchProof { head: self.head_evidence(), terms: terms.to_vec(), leaves, proofs }
    }

    /// The answer to a question, proven in two pages, with these entries and the erased one if the question is about it.
    pub fn answer(&self, question: SearchQuestion, entries: &[u64]) -> SearchAnswer {
        let LeafRange { start, end } = question.leaves_within(SIZE);
        let middle = u64::midpoint(start.get(), end.get());
        let terms = &question.terms;
        let pages = [(start.get(), middle), (middle, end.get())];
        let pages = pages.map(|(start, end)| self.page(terms, LeafRange::new(start, end)));
        let erased = (end.get() > ERASED).then(|| self.erased());
        let mut leaves = [entries, &[HEAD]].concat();
        leaves.sort_unstable();
        SearchAnswer {
            question,
            pages: pages.to_vec(),
            erased: erased.into_iter().collect(),
            evidence: EvidenceBundle {
                version: VERSION,
                checkpoint: self.checkpoint(),
                claims: BundleClaims::default(),
                entries: leaves.into_iter().map(|leaf| self.entry(leaf)).collect(),
                policies: vec![self.entry(0)],
                selections: vec![],
            },
            attestations: vec![],
        }
    }

    fn erased(&self) -> ErasedEntry {
        let entry = self.statements[ERASED as usize].digest();
        ErasedEntry { leaf: LeafIndex::new(ERASED), entry, path: self.path(ERASED) }
    }
}

/// The statements before the head.
fn indexed() -> Vec<SignedStatement> {
    let policy = policy();
    let first = policy_statement::sign(&policy, &policy, &testkit::operator()).unwrap();
    let unserved = StatementBuilder::new("{}").content_type("application/json").kid(KID).iss(ISSUER);
    let unserved = unserved.sub("c").detached().sign(&testkit::es256()).unwrap();
    let mut statements = vec![first, about("a", 1), about("b", 2), about("a", 3), unserved, about("a", 5)];
    let erasure = NewErasure {
        sequence: 0,
        entries: vec![statements[ERASED as usize].digest()],
        reason: "asked to".to_owned(),
        rule: "request".to_owned(),
        at: None,
        authorized_by: None,
    };
    let operators = &policy.contents().operators;
    statements.push(erasure::sign(&erasure, (LOG_ISS, ORIGIN), operators, &testkit::operator()).unwrap());
    statements
}

/// A statement about a subject.
fn about(subject: &str, number: u64) -> SignedStatement {
    testkit::opaque(subject, &number.into())
}

fn postings_of(leaf: u64, statement: &SignedStatement) -> Vec<Posting> {
    let leaf = LeafIndex::new(leaf);
    if leaf.get() == ERASED {
        return vec![Posting::blind(BlindCode::Erased, leaf)];
    }
    let keys = SearchValues::of_statement(statement, None).keys();
    keys.into_iter().map(|key| Posting { key, leaf }).collect()
}

fn head(postings: &[Posting], indexed: &[SignedStatement]) -> IndexHead {
    IndexHead {
        series: policy().contents().index.as_ref().unwrap().series(),
        size: TreeSize::new(SIZE),
        log_root: root_of(indexed),
        horizon: LeafIndex::new(SIZE),
        runs: vec![HeadRun { id: RunId::TAIL, summary: RunSummary::of(postings).unwrap() }],
    }
}

fn head_statement(head: &IndexHead) -> SignedStatement {
    let policy = policy();
    let rules = policy.contents().index.as_ref().unwrap();
    index_head::sign(head, NOW - 70, (LOG_ISS, ORIGIN), rules, &testkit::verifier()).unwrap()
}

fn root_of(statements: &[SignedStatement]) -> RootHash {
    CompactRange::empty().grow(&leaf_hashes(statements)).root()
}

fn leaf_hashes(statements: &[SignedStatement]) -> Vec<LeafHash> {
    statements.iter().map(|statement| statement.digest().leaf_hash()).collect()
}

/// The policy of the tests, with an index.
fn policy() -> Policy {
    let (table, key) = (index_table_digest(), testkit::verifier().public_key().did_key());
    let index = format!("[index]\ntable = \"sha256:{table}\"\nkeys = [\"{key}\"]\nevery = 60\n");
    Policy::from_toml(&(testkit::policy_toml() + "\n" + &index)).unwrap()
}

fn receipt_key() -> SigningKey {
    testkit::ed25519([0x42; 32])
}

fn checkpoint_key() -> LocalKey {
    LocalKey::new(ORIGIN.parse().unwrap(), ed25519_dalek::SigningKey::from_bytes(&[0x43; 32])).unwrap()
}

/// A reader who trusts the log, and knows no issuer.
pub fn trust() -> TrustStore {
    let key = CoseKey::bare(receipt_key().public_key().clone());
    let mut log = TrustedLog::new(LOG_ISS, ORIGIN, vec![key]);
    log.checkpoint_keys.push(checkpoint_key().key().to_string());
    TrustStore { logs: vec![log], ..TrustStore::default() }
}

pub fn issuer() -> SearchTerm {
    SearchTerm { kind: LookupKind::Issuer.number(), value: ISSUER.as_bytes().to_vec() }
}

pub fn subject(name: &str) -> SearchTerm {
    SearchTerm { kind: LookupKind::Subject.number(), value: name.as_bytes().to_vec() }
}

/// The question for entries of the issuer about a subject.
pub fn question(name: &str, to: Option<u64>) -> SearchQuestion {
    SearchQuestion {
        terms: vec![issuer(), subject(name)],
        from: LeafIndex::new(0),
        to: to.map(LeafIndex::new),
    }
}

/// Verifies what is read from the file of an answer.
pub fn verify(answer: &SearchAnswer, trust: &TrustStore) -> AnswerVerdict {
    let answer = SearchAnswer::decode(&answer.encode()).unwrap();
    answer.verify(&AnswerReader { trust, witnesses: None, monitors: None, attestations: &[], now: NOW })
}

pub fn found(verdict: &AnswerVerdict) -> Vec<u64> {
    verdict.found.iter().map(|entry| entry.leaf).collect()
}
