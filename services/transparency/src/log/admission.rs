//! From a parsed statement to a submission: authenticate it, read its record, and decide under the policy in force.
//!
//! The policy in force is always the newest policy entry of the log. A configured policy takes effect once it is an
//! entry (module `service::policy`).

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{LeafIndex, TreeSize};
use registration::{
    Answers, Authenticated, COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Guard, NotPermitted, Permit,
    PolicyInForce, Questions, Record, Refusal, SearchValues, SideData, Undecided, Untrusted, Violation,
    operator,
};
use scitt::{SignedStatement, X5Chain};
use sequencer::{ClockCorrection, Redecide, Redecision, Submission, SubmitError, TimeWindow};
use store::lookup::EntryTerms;
use store::{AdmissionStore, Collateral, Effect, GuardKey, LogReader, NewEntry, StoreError};
use tracing::Instrument;

use crate::log::equivocation::{self, RefusedStatement};
use crate::log::erasures::{ErasureHold, on_hold};
use crate::log::policies::Policies;
use crate::log::terms::entry_terms;
use crate::metrics::Metrics;
use crate::metrics::latency::Stage;
use crate::quota::issuer_quota::IssuerCharge;
use crate::quota::rates::OverRate;
use crate::run_blocking::run_blocking;
use crate::spans;

/// An admitted statement with the conditions of its submission.
pub struct Admitted {
    /// Input for the sequencer.
    pub submission: Submission,
    /// The statement's issuer (`iss`).
    pub issuer: String,
    /// The decision, kept to explain a later refusal by the sequencer.
    pub permit: Permit,
    /// What the entry will be found by.
    pub terms: EntryTerms,
}

/// Reason why a statement is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// The issuer is not established.
    #[error("{}", .0.violation())]
    Untrusted(Untrusted),
    /// The policy refuses the statement.
    #[error(transparent)]
    Refused(Refusal),
    /// The issuer is over its quota.
    #[error("the issuer has reached its rate of registrations")]
    OverQuota(OverRate),
    /// The policy reached no decision; a retry may.
    #[error(transparent)]
    Undecided(Undecided),
    /// An entry that the statement would erase is on hold.
    #[error("{} is on hold for the case {:?}", .0.entry, .0.case)]
    Held(ErasureHold),
    /// The bytes of the entry that the statement would hold are erased already.
    #[error("entry {0} was erased: nothing of it can be held")]
    NothingToHold(LeafIndex),
    /// The store failed while the decision's questions were looked up.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<NotPermitted> for NotAdmitted {
    fn from(why: NotPermitted) -> Self {
        match why {
            NotPermitted::Refused(refusal) => NotAdmitted::Refused(refusal),
            NotPermitted::Undecided(undecided) => NotAdmitted::Undecided(undecided),
        }
    }
}

/// Authenticates a statement, reads its record, and decides about it under `in_force`.
///
/// The issuer's quota is charged on `issuer_charge` once its signature is verified.
pub async fn admit(
    statement: &SignedStatement,
    side_data: SideData<'_>,
    in_force: &PolicyInForce,
    log: &dyn AdmissionStore,
    metrics: &Metrics,
    issuer_charge: Option<&mut IssuerCharge>,
) -> Result<Admitted, NotAdmitted> {
    let bytes = statement.bytes().len() + side_data.payload.map_or(0, <[u8]>::len);
    let started = Instant::now();
    let authenticate = || run_blocking(bytes, || in_force.authenticate(statement, side_data));
    let authenticated = spans::stage(Stage::Verify).in_scope(authenticate).map_err(NotAdmitted::Untrusted)?;
    metrics.stage(Stage::Verify, started.elapsed());
    if let Some(issuer_charge) = issuer_charge {
        issuer_charge.charge(log, authenticated.iss()).await.map_err(NotAdmitted::OverQuota)?;
    }
    let started = Instant::now();
    let decided = decide(&authenticated, bytes, in_force, log).instrument(spans::stage(Stage::Policy));
    let (permit, record) = decided.await?;
    metrics.stage(Stage::Policy, started.elapsed());
    let terms = terms(&authenticated, &record, side_data, in_force);
    let submission =
        submission(&authenticated, side_data.payload.map(Bytes::copy_from_slice), &permit, in_force);
    Ok(Admitted { submission, issuer: authenticated.iss().to_owned(), permit, terms })
}

/// Reads the record of an authenticated statement of this many bytes, and decides about it; returns the record too.
async fn decide(
    authenticated: &Authenticated<'_>,
    bytes: usize,
    in_force: &PolicyInForce,
    log: &dyn AdmissionStore,
) -> Result<(Permit, Record), NotAdmitted> {
    let refused = |violation: Violation| NotAdmitted::Refused(in_force.refuse(violation));
    let (record, questions) = run_blocking(bytes, || {
        let record = Record::read(authenticated)?;
        let questions = in_force.questions(authenticated, &record);
        Ok((record, questions))
    })
    .map_err(refused)?;
    let answers = ask(log, questions).await?;
    let permit = run_blocking(bytes, || in_force.decide(authenticated, &record, &answers)).into_permit()?;
    if let Record::Erasure(erasure) = &record
        && let Some(hold) = on_hold(log, erasure, &answers).await?
    {
        return Err(NotAdmitted::Held(hold));
    }
    if let Some(operator::Effect::Hold { entry, .. }) = permit.effect() {
        let statuses = log.statuses(&[*entry]).await?;
        if statuses.iter().all(|status| !status.has_statement) {
            return Err(NotAdmitted::NothingToHold(*entry));
        }
    }
    Ok((permit, record))
}

/// The search terms of an admitted statement, as they will be read from its entry: with a detached payload only if the
/// log keeps it.
fn terms(
    authenticated: &Authenticated<'_>,
    record: &Record,
    side_data: SideData<'_>,
    in_force: &PolicyInForce,
) -> EntryTerms {
    let header = authenticated.header();
    let values = match side_data.payload.is_none() || in_force.keeps_payload(header) {
        true => SearchValues::of_record(header, record, Some(authenticated.payload())),
        false => SearchValues::read(header, None),
    };
    entry_terms(values)
}

/// Looks up a decision's questions in the log.
pub async fn ask(log: &dyn LogReader, questions: Questions) -> Result<Answers, StoreError> {
    let mut answers = Answers::none();
    if !questions.digests.is_empty() {
        let found = log.find(&questions.digests).await?;
        for (digest, found) in questions.digests.into_iter().zip(found) {
            if let Some(found) = found.filter(|found| found.digest == digest) {
                answers.put_entry(digest, found.index);
            }
        }
    }
    if !questions.guards.is_empty() {
        let held = log.guards(&keys(&questions.guards)).await?;
        for (guard, leaf) in questions.guards.into_iter().zip(held) {
            if let Some(leaf) = leaf {
                answers.put_guard(guard, leaf);
            }
        }
    }
    Ok(answers)
}

/// Decides about a statement without looking anything up, for a log that no process serves. A statement whose decision
/// depends on other entries is refused, as if the log had none.
pub fn admit_alone(statement: &SignedStatement, in_force: &PolicyInForce) -> Result<NewEntry, NotAdmitted> {
    let authenticated =
        in_force.authenticate(statement, SideData::default()).map_err(NotAdmitted::Untrusted)?;
    let record =
        Record::read(&authenticated).map_err(|violation| NotAdmitted::Refused(in_force.refuse(violation)))?;
    let permit = in_force.decide(&authenticated, &record, &Answers::none()).into_permit()?;
    Ok(submission(&authenticated, None, &permit, in_force).entry)
}

/// The submission of entry 0: no policy precedes it, so it is decided under its own permit.
pub fn genesis(statement: &SignedStatement, permit: &Permit) -> Submission {
    let entry = new_entry(statement, permit, Vec::new());
    let nothing_before = LeafIndex::new(0);
    Submission {
        entry,
        valid: window(permit),
        largest_tree: None,
        decided_under: nothing_before,
        relied_absent: Vec::new(),
        relied_free: Vec::new(),
        side_data: Vec::new(),
        is_policy: true,
        corrects: None,
        effect: None,
    }
}

fn submission(
    authenticated: &Authenticated<'_>,
    payload: Option<Bytes>,
    permit: &Permit,
    in_force: &PolicyInForce,
) -> Submission {
    let chain = authenticated
        .collateral()
        .map(|chain| Collateral { kind: COLLATERAL_X5CHAIN, bytes: chain.encode().into() });
    let payload = payload.map(|bytes| Collateral { kind: COLLATERAL_PAYLOAD, bytes });
    // A payload that is not kept still waits with the statement: if the policy changes meanwhile, the new decision
    // needs the same bytes.
    let (kept, side_data) = match in_force.keeps_payload(authenticated.header()) {
        true => (payload, None),
        false => (None, payload),
    };
    Submission {
        entry: new_entry(authenticated.statement(), permit, chain.into_iter().chain(kept).collect()),
        valid: window(permit),
        largest_tree: permit.largest_tree(),
        decided_under: in_force.leaf(),
        relied_absent: permit.relied_absent().to_vec(),
        relied_free: keys(permit.relied_free()),
        side_data: side_data.into_iter().collect(),
        is_policy: permit.successor().is_some(),
        corrects: permit.clock_correction().map(|correction| ClockCorrection {
            size: correction.size,
            committed_at: correction.committed_at,
            time: correction.time,
        }),
        effect: permit.effect().map(effect),
    }
}

fn effect(effect: &operator::Effect) -> Effect {
    match effect {
        operator::Effect::Freeze => Effect::Freeze,
        operator::Effect::Hold { entry, case } => Effect::Hold { entry: *entry, case: case.clone() },
        operator::Effect::Release { entry, case } => Effect::Release { entry: *entry, case: case.clone() },
    }
}

fn new_entry(statement: &SignedStatement, permit: &Permit, collateral: Vec<Collateral>) -> NewEntry {
    NewEntry {
        digest: permit.statement(),
        twin: statement.twin(),
        statement: statement.bytes().clone(),
        policy: permit.policy(),
        rule: permit.rule().as_str().to_owned(),
        facts: permit.facts().to_owned(),
        guards: keys(permit.guards()),
        collateral,
    }
}

fn keys(guards: &[Guard]) -> Vec<GuardKey> {
    guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect()
}

fn window(permit: &Permit) -> TimeWindow {
    let valid = permit.valid();
    TimeWindow { from: valid.not_before.unwrap_or(0), until: valid.not_after.unwrap_or(u64::MAX) }
}

/// Decides again about statements in the inbox after the policy changed.
pub struct InboxRedecider {
    /// Database of the log.
    pub store: Arc<dyn AdmissionStore>,
    /// The policy in force.
    pub policies: Arc<Policies>,
    /// Records the duration of the stages `verify` and `policy`.
    pub metrics: Arc<Metrics>,
}

#[async_trait]
impl Redecide for InboxRedecider {
    async fn redecide(&self, submission: Submission) -> Redecision {
        match self.decide(&submission).await {
            Ok(admitted) => Redecision::Admit(Box::new(admitted.submission)),
            Err(NotDecided::Later) => Redecision::Later,
            Err(NotDecided::Refused(why)) => Redecision::Refuse(why),
        }
    }

    async fn outside_window(&self, submission: &Submission, at: u64) -> String {
        let refusal = self.refusal(submission, |permit| permit.refusal_at(at)).await;
        let window = submission.valid;
        refusal.unwrap_or_else(|| SubmitError::OutsideWindow { at, window }.to_string())
    }

    async fn log_full(&self, submission: &Submission, size: TreeSize) -> String {
        let refusal = self.refusal(submission, |permit| permit.refusal_at_leaf(size.next_leaf())).await;
        let largest = submission.largest_tree.unwrap_or(size);
        refusal.unwrap_or_else(|| SubmitError::LogFull { size, largest }.to_string())
    }

    async fn guard_taken(&self, submission: &Submission, key: &GuardKey, by: LeafIndex) -> String {
        let NewEntry { digest, statement, .. } = &submission.entry;
        let refused = RefusedStatement { digest: *digest, statement, key, held_by: by };
        equivocation::look_into(&*self.store, &self.metrics, &refused).await;
        equivocation::explanation(key, by)
    }
}

/// Reason why a statement from the inbox has no permit.
enum NotDecided {
    /// Not decided now: the store failed or the policy reached no decision. A retry may succeed.
    Later,
    /// Refused for good, with the reason.
    Refused(String),
}

impl InboxRedecider {
    /// The refusal that the permit of a statement turns into, or that the policy in force has for it.
    async fn refusal(
        &self,
        submission: &Submission,
        turned: impl FnOnce(&Permit) -> Option<Refusal>,
    ) -> Option<String> {
        match self.decide(submission).await {
            Ok(admitted) => turned(&admitted.permit).map(|refusal| refusal.to_string()),
            Err(NotDecided::Refused(why)) => Some(why),
            Err(NotDecided::Later) => None,
        }
    }

    /// Decides under the policy in force now.
    async fn decide(&self, submission: &Submission) -> Result<Admitted, NotDecided> {
        let head = self.store.head().await.map_err(|_| NotDecided::Later)?;
        let current = self.policies.follow(head.policy).await.map_err(|_| NotDecided::Later)?;
        let waited = InboxStatement::of(submission).map_err(NotDecided::Refused)?;
        let (store, metrics) = (&*self.store, &self.metrics);
        let decided = admit(&waited.statement, waited.side_data(), &current.in_force, store, metrics, None);
        decided.await.map_err(|why| match why {
            NotAdmitted::Store(_) | NotAdmitted::Undecided(_) => NotDecided::Later,
            why => NotDecided::Refused(why.to_string()),
        })
    }
}

/// A statement from the inbox, with its detached payload and certificate chain.
struct InboxStatement {
    statement: SignedStatement,
    payload: Option<Bytes>,
    x5chain: Option<X5Chain>,
}

impl InboxStatement {
    fn of(submission: &Submission) -> Result<Self, String> {
        let statement =
            SignedStatement::parse(submission.entry.statement.clone()).map_err(|why| why.to_string())?;
        let waited = |kind| {
            let all = submission.entry.collateral.iter().chain(&submission.side_data);
            all.filter(|item| item.kind == kind).map(|item| item.bytes.clone()).next()
        };
        let chain = waited(COLLATERAL_X5CHAIN).map(|bytes| X5Chain::decode(&bytes)).transpose();
        let x5chain = chain.map_err(|why| why.to_string())?;
        Ok(Self { statement, payload: waited(COLLATERAL_PAYLOAD), x5chain })
    }

    fn side_data(&self) -> SideData<'_> {
        SideData { payload: self.payload.as_deref(), x5chain: self.x5chain.as_ref() }
    }
}
