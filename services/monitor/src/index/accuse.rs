//! Accusations against a head, each with the best evidence that the log gives.
//!
//! An accusation that a file shows alone is raised only if the file convinces this monitor, too. Everything else is
//! `index-differs`: the head, and the runs that were computed.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use index_audit::{EarlierHead, FormFault, IndexRecomputation, WrongRun};
use lookup_tree::ScheduledRun;
use search_evidence::check_accusation;
use verifier::index::{
    IndexAccusation, IndexAccusationFile, IndexFormFault, IndexHeadEvidence, IndexPolicyEvidence,
};
use verifier::{CheckpointEvidence, TrustStore};

use super::head_entry::HeadEntry;
use super::indexed_log::{IndexPolicy, IndexedLog};
use super::narrow::find_evidence;
use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::evidence::{ComputedRun, Evidence};
use crate::limits::{MAX_INDEX_EVIDENCE_BYTES, MAX_INDEX_REASON};

/// The accuser of one head.
pub struct Accuser<'c> {
    /// Name of the log in the configuration.
    pub name: &'c str,
    /// The log, for evidence.
    pub log: &'c IndexedLog<'c>,
    /// The index that was computed.
    pub recomputation: &'c IndexRecomputation,
    /// The log's receipt keys; without them, no accusation is checked, and all are `index-differs`.
    pub trust: Option<&'c TrustStore>,
    /// The policy that admitted the head.
    pub policy: &'c IndexPolicy,
    /// The head.
    pub entry: &'c HeadEntry,
    /// Time of the round in Unix seconds.
    pub now: u64,
}

impl Accuser<'_> {
    /// The alarm about a rule that the form of the head breaks.
    pub async fn form(&self, fault: &FormFault) -> Alarm {
        let words = format!("{}: {fault}", self.place());
        let accusations = self.form_accusation(fault).await.map(|accusation| vec![accusation]);
        self.alarm(rule(fault), words, accusations, Vec::new()).await
    }

    /// The alarm about a run that differs.
    pub async fn run(&self, wrong: &WrongRun) -> Alarm {
        let words = format!("{}: {wrong}", self.place());
        let accusations =
            find_evidence(self.log, self.recomputation, (&wrong.run, self.entry.head.horizon)).await;
        self.alarm(&run_name(&wrong.run), words, accusations, vec![ComputedRun::from(wrong)]).await
    }

    fn place(&self) -> String {
        format!("the head of the index at leaf {}", self.entry.leaf)
    }

    /// Raises the first accusation that convinces; else, `index-differs`.
    async fn alarm(
        &self,
        which: &str,
        words: String,
        accusations: Result<Vec<IndexAccusation>, String>,
        runs: Vec<ComputedRun>,
    ) -> Alarm {
        let evidence = match accusations {
            Ok(accusations) => self.convincing(accusations).await,
            Err(why) => Err(why),
        };
        let alarm = |kind, words| {
            Alarm::new(kind, self.name, AlarmSubject::Log, words, self.now).which(which.to_owned())
        };
        match evidence {
            Ok((kind, evidence)) => Alarm { evidence: Some(evidence), ..alarm(kind, words) },
            Err(why) => {
                let why: String = why.chars().take(MAX_INDEX_REASON).collect();
                let words = format!("{words}; no file shows it alone: {why}");
                let evidence = Some(self.differing(runs).await);
                Alarm { evidence, ..alarm(AlarmKind::IndexDiffers, words) }
            }
        }
    }

    /// The first accusation that is short enough and whose check succeeds, with its evidence.
    async fn convincing(&self, accusations: Vec<IndexAccusation>) -> Result<(AlarmKind, Evidence), String> {
        let trust = self.trust.ok_or("the log's receipt keys are not configured (`trust`)")?;
        let statement = &self.policy.statement;
        let receipt = self.log.receipt(statement).await.map_err(|why| why.to_string())?;
        let policy = IndexPolicyEvidence { statement: statement.bytes().to_vec(), receipt };
        let mut refused = "the log proves nothing that its statements contradict".to_owned();
        for accusation in accusations {
            let kind = kind(&accusation);
            let file = IndexAccusationFile { policy: policy.clone(), accusation };
            match self.check(&file, trust) {
                Ok(evidence) => return Ok((kind, evidence)),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// Checks an accusation, and makes it evidence.
    fn check(&self, file: &IndexAccusationFile, trust: &TrustStore) -> Result<Evidence, String> {
        let bytes = file.encode();
        if bytes.len() > MAX_INDEX_EVIDENCE_BYTES {
            let length = bytes.len();
            return Err(format!("the file has {length} bytes, of at most {MAX_INDEX_EVIDENCE_BYTES}"));
        }
        check_accusation(file, trust, self.now).map_err(|why| why.to_string())?;
        Ok(Evidence::Index { file: BASE64.encode(&bytes) })
    }

    /// The head, and what was computed instead.
    async fn differing(&self, runs: Vec<ComputedRun>) -> Evidence {
        let receipt = self.log.receipt(&self.entry.statement).await.ok();
        let receipt = receipt.filter(|receipt| receipt.len() <= MAX_INDEX_EVIDENCE_BYTES);
        Evidence::IndexHead {
            statement: BASE64URL_NOPAD.encode(self.entry.statement.bytes()),
            receipt: receipt.map(|receipt| BASE64URL_NOPAD.encode(&receipt)),
            runs,
        }
    }

    async fn form_accusation(&self, fault: &FormFault) -> Result<IndexAccusation, String> {
        let head = self.log.head(&self.entry.statement).await.map_err(|why| why.to_string())?;
        let fault = match fault {
            FormFault::WrongRuns(_) => IndexFormFault::WrongRuns(head),
            FormFault::BeyondLeaf { .. } => return Err("its receipt shows the leaf".to_owned()),
            FormFault::HorizonBack { earlier, .. } => {
                IndexFormFault::HorizonBack { earlier: self.earlier(earlier).await?, later: head }
            }
            FormFault::TwoHeads { earlier } => IndexFormFault::TwoHeads(self.earlier(earlier).await?, head),
            FormFault::OtherLogRoot { root, .. } => {
                let path = self.path_to_receipt(&head).await?;
                IndexFormFault::OtherLogRoot { head, root: *root, path }
            }
        };
        Ok(IndexAccusation::Form(fault))
    }

    async fn earlier(&self, earlier: &EarlierHead) -> Result<IndexHeadEvidence, String> {
        let statement = self.log.statement(&earlier.entry).await.map_err(|why| why.to_string())?;
        self.log.head(&statement).await.map_err(|why| why.to_string())
    }

    /// The path from the log at the size of the head to the tree that its receipt signs.
    async fn path_to_receipt(&self, head: &IndexHeadEvidence) -> Result<Vec<merkle::Hash>, String> {
        let trust = self.trust.ok_or("the log's receipt keys are not configured (`trust`)")?;
        let index = &self.policy.index.trusted;
        let verdict = head.verify(index, &CheckpointEvidence::default(), trust, self.now);
        let proven = verdict.head.ok_or("the receipt of the head does not verify")?;
        let path = self.log.consistency(proven.head.size, proven.tree.size).await;
        path.map_err(|why| why.to_string())
    }
}

/// The name of a run, which tells alarms apart.
pub fn run_name(run: &ScheduledRun) -> String {
    format!("run {}", run.id)
}

/// The name of a rule of the form, which tells alarms apart.
fn rule(fault: &FormFault) -> &'static str {
    match fault {
        FormFault::WrongRuns(_) => "runs",
        FormFault::BeyondLeaf { .. } => "size",
        FormFault::HorizonBack { .. } => "horizon",
        FormFault::TwoHeads { .. } => "two-heads",
        FormFault::OtherLogRoot { .. } => "log-root",
    }
}

fn kind(accusation: &IndexAccusation) -> AlarmKind {
    match accusation {
        IndexAccusation::Omits(_) => AlarmKind::IndexOmits,
        IndexAccusation::Adds(_) => AlarmKind::IndexAdds,
        IndexAccusation::Form(_) => AlarmKind::IndexForm,
    }
}
