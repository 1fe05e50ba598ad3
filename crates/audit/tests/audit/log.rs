//! A log that is written as the service writes one: every entry admitted by the policy in force, in signed batches.

use std::sync::Arc;

use bytes::Bytes;
use merkle::tile::OpenTiles;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use registration::clock_correction::{self, ClockCorrection};
use registration::policy_statement;
use registration::{
    Answers, COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Guard, Permit, Policy, PolicyInForce, Record, SideData,
};
use scitt::{ReceiptHeader, SignedStatement, Signer, SigningKey};
use store::{
    AppendedBatch, Batch, Collateral, GuardKey, Head, HeadSignature, LogKey, LogStore, NewEntry,
    SignatureKind,
};
use testkit::{LOG_ISS, NOW, ORIGIN};

/// A statement and what comes beside it.
#[derive(Clone, Debug)]
pub struct Draft {
    pub statement: SignedStatement,
    pub payload: Option<Bytes>,
}

impl From<SignedStatement> for Draft {
    fn from(statement: SignedStatement) -> Self {
        Self { statement, payload: None }
    }
}

/// A log and who writes it.
pub struct Log {
    pub store: Arc<dyn LogStore>,
    pub in_force: PolicyInForce,
    head: Head,
    tiles: OpenTiles,
    key: SigningKey,
    /// By how many seconds the clock is ahead.
    pub ahead: u64,
}

impl Log {
    /// A new log under this policy; its first batch holds entry 0.
    pub async fn under(store: Arc<dyn LogStore>, policy: &Policy) -> Self {
        let head = store.open(ORIGIN).await.unwrap();
        let key = testkit::ed25519([0x77; 32]);
        let public = key.public_key();
        let published = LogKey::new(
            public.thumbprint().to_vec(),
            public.to_cose_key(None, Some(key.algorithm())).into(),
            TreeSize::EMPTY,
        );
        store.keep_key(&published).await.unwrap();
        let first = policy_statement::sign(policy, policy, &testkit::operator()).unwrap();
        let (in_force, permit) = policy_statement::genesis(&first).unwrap();
        let mut log = Self { store, in_force, head, tiles: OpenTiles::empty(), key, ahead: 0 };
        let entry = new_entry(&first, &permit, Vec::new());
        log.commit(vec![entry], true).await;
        log
    }

    /// A correction of the time of the newest head, by its operator.
    pub fn corrected(&self) -> ClockCorrection {
        let (size, committed_at) = (self.head.size(), self.head.at);
        ClockCorrection { size, committed_at, time: NOW, reason: "a test".into() }
    }

    /// The correction as a signed statement.
    pub fn signed(&self, correction: &ClockCorrection) -> SignedStatement {
        let operators = &self.in_force.policy().contents().operators;
        clock_correction::sign(correction, (LOG_ISS, ORIGIN), operators, &testkit::operator()).unwrap()
    }

    pub fn size(&self) -> u64 {
        self.head.size().get()
    }

    /// One batch of these statements, each decided as the service decides it. Answers with the first leaf.
    pub async fn register(&mut self, drafts: Vec<Draft>) -> u64 {
        let first = self.size();
        let mut entries = Vec::new();
        let mut successor = None;
        for draft in drafts {
            assert!(successor.is_none(), "a policy is the last entry of its batch");
            let (entry, permit) =
                self.admit(&draft).await.unwrap_or_else(|why| panic!("not admitted: {why}"));
            let together =
                |digest: &EntryDigest| entries.iter().any(|other: &NewEntry| other.digest == *digest);
            let claimed = |guard: &Guard| {
                let key = GuardKey(guard.as_bytes().to_vec());
                entries.iter().any(|other: &NewEntry| other.guards.contains(&key))
            };
            assert!(
                !permit.relied_absent().iter().any(together) && !permit.relied_free().iter().any(claimed),
                "a sequencer would not put these in one batch"
            );
            successor = permit.successor().cloned();
            entries.push(entry);
        }
        let last = LeafIndex::new(first + entries.len() as u64 - 1);
        self.commit(entries, successor.is_some()).await;
        if let Some(policy) = successor {
            self.in_force = PolicyInForce::new(policy, last);
        }
        first
    }

    /// The next revision of the policy, as a statement.
    pub fn revised(&self, toml: &str) -> SignedStatement {
        let revision = self.in_force.policy().contents().revision + 1;
        let toml = toml.replace("revision = 0", &format!("revision = {revision}"));
        let policy = Policy::from_toml(&toml).unwrap();
        policy_statement::sign(&policy, self.in_force.policy(), &testkit::operator()).unwrap()
    }

    /// Decides a statement as the service does.
    pub async fn admit(&self, draft: &Draft) -> Result<(NewEntry, Permit), String> {
        let beside = SideData { payload: draft.payload.as_deref(), x5chain: None };
        let authenticated = self
            .in_force
            .authenticate(&draft.statement, beside)
            .map_err(|why| why.violation().to_string())?;
        let record = Record::read(&authenticated).map_err(|why| why.to_string())?;
        let questions = self.in_force.questions(&authenticated, &record);
        let mut answers = Answers::none();
        let found = self.store.find(&questions.digests).await.unwrap();
        for (digest, found) in questions.digests.iter().zip(found) {
            if let Some(found) = found.filter(|found| found.digest == *digest) {
                answers.put_entry(*digest, found.index);
            }
        }
        let keys: Vec<GuardKey> =
            questions.guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        for (guard, holder) in questions.guards.iter().zip(self.store.guards(&keys).await.unwrap()) {
            if let Some(leaf) = holder {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        let permit = self.in_force.decide(&authenticated, &record, &answers).into_permit();
        let permit = permit.map_err(|why| why.to_string())?;
        let mut collateral = Vec::new();
        if let Some(chain) = authenticated.collateral() {
            collateral.push(Collateral { kind: COLLATERAL_X5CHAIN, bytes: chain.encode().into() });
        }
        let keeps = self.in_force.keeps_payload(authenticated.header());
        if let Some(payload) = draft.payload.clone().filter(|_| keeps) {
            collateral.push(Collateral { kind: COLLATERAL_PAYLOAD, bytes: payload });
        }
        Ok((new_entry(&draft.statement, &permit, collateral), permit))
    }

    /// Commits entries that were not admitted: what an intruder in the service could do.
    pub async fn smuggle(&mut self, entries: Vec<NewEntry>) {
        self.commit(entries, false).await;
    }

    async fn commit(&mut self, entries: Vec<NewEntry>, ends_in_policy: bool) {
        let at = NOW + self.head.batch + self.ahead;
        let built = Batch::append(&self.head, &self.tiles, at, entries).unwrap();
        let AppendedBatch { mut batch, growth, tiles } = built;
        if ends_in_policy {
            batch.to.policy = growth.size().last_leaf().unwrap();
        }
        self.store.commit(&batch).await.unwrap();
        (self.head, self.tiles) = (batch.to, tiles);
        self.sign().await;
    }

    async fn sign(&self) {
        let (size, kid) = (self.head.size(), self.key.public_key().thumbprint().to_vec());
        let header = ReceiptHeader {
            alg: self.key.algorithm(),
            kid: kid.clone(),
            iss: LOG_ISS.into(),
            sub: ORIGIN.into(),
            iat: self.head.at,
            tree_size: size,
        };
        let bytes = header.sign_root(&self.key, &self.head.root()).unwrap().to_bytes().into();
        let signature = HeadSignature { size, kind: SignatureKind::Receipt, kid, bytes };
        self.store.keep_signature(&signature).await.unwrap();
    }
}

fn new_entry(statement: &SignedStatement, permit: &Permit, collateral: Vec<Collateral>) -> NewEntry {
    NewEntry {
        digest: EntryDigest::of(statement.bytes()),
        twin: statement.twin(),
        statement: statement.bytes().clone(),
        policy: permit.policy(),
        rule: permit.rule().as_str().to_owned(),
        facts: permit.facts().to_owned(),
        guards: permit.guards().iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect(),
        collateral,
    }
}
