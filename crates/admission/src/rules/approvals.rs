//! Approvers outside of the client, and the decisions that wait for them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::approval::{ApprovalError, Question, SignedApproval, SignedReaderProof, SubjectKind};
use crate::limits::QUESTION_SECONDS;
use crate::signature::AgentKey;
use vap::glob::{self, Pattern};

/// The party that answers a question about a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decider {
    /// The client asks its user and reports the answer.
    #[default]
    Client,
    /// An approver signs the answer.
    Approver,
}

impl Decider {
    /// Returns the name used in the configuration and in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Decider::Client => "client",
            Decider::Approver => "approver",
        }
    }
}

/// A person or a service with the right to approve.
#[derive(Clone, Debug)]
pub struct Approver {
    /// The approver's name, as in the record.
    pub name: String,
    /// Patterns of the tools that the approver may decide about; empty for all.
    pub tools: Vec<Pattern>,
    /// The approver's public keys.
    pub keys: Vec<AgentKey>,
}

/// The approvers of a route, and the decisions that wait for them.
#[derive(Clone, Debug)]
pub struct Approvals {
    /// The approvers for this route.
    pub approvers: Vec<Approver>,
    /// The party that answers confirmations, required by a rule with `confirm` or by an uncertain judge.
    pub confirmations: Decider,
    /// `true` if commitments need an approval.
    pub commitments: bool,
    /// `true` if amendments need an approval, unless an approver signed them.
    pub amendments: bool,
    /// The lifetime of a question.
    pub time: SignedDuration,
}

impl Default for Approvals {
    fn default() -> Self {
        Approvals {
            approvers: Vec::new(),
            confirmations: Decider::Client,
            commitments: false,
            amendments: false,
            time: SignedDuration::from_secs(QUESTION_SECONDS),
        }
    }
}

impl Approver {
    /// Returns `true` if the approver may answer a question of this kind about this tool.
    #[must_use]
    pub fn may_answer(&self, kind: SubjectKind, tool: &str) -> bool {
        // An approver for some tools only must not decide about commitments: these also admit other tools.
        match kind {
            SubjectKind::Call => self.tools.is_empty() || glob::matches_any(&self.tools, tool),
            SubjectKind::Commitment | SubjectKind::Amendment => self.tools.is_empty(),
        }
    }

    /// Returns `true` if the approver may answer questions about some tool that matches the pattern; `None` stands for
    /// any tool.
    #[must_use]
    pub fn may_answer_some(&self, tool: Option<&Pattern>) -> bool {
        let Some(tool) = tool else { return true };
        self.tools.is_empty() || self.tools.iter().any(|pattern| pattern.overlaps(tool))
    }

    fn describe(&self) -> Value {
        let Approver { name, tools, keys } = self;
        json!({
            "name": name,
            "tools": tools.iter().map(Pattern::as_str).collect::<Vec<_>>(),
            "keys": keys.iter().map(AgentKey::describe).collect::<Vec<_>>(),
        })
    }
}

impl Approvals {
    /// Returns `true` if an approver with a valid key may answer a question of this kind about this tool.
    #[must_use]
    pub fn has_approver_for(&self, kind: SubjectKind, tool: &str, now: Timestamp) -> bool {
        let has_valid_key = |approver: &Approver| approver.keys.iter().any(|key| key.is_valid(now));
        self.approvers.iter().any(|approver| approver.may_answer(kind, tool) && has_valid_key(approver))
    }

    /// Verifies an answer to a question and returns its approver. Only keys that are valid now count.
    ///
    /// # Errors
    /// Those of [`SignedApproval::check_answers`]; otherwise the error of the last matching key, or
    /// [`ApprovalError::Key`] if no key matches.
    pub fn check(
        &self,
        signed: &SignedApproval,
        question: &Question,
        now: Timestamp,
    ) -> Result<&Approver, ApprovalError> {
        signed.check_answers(question, now)?;
        let (kind, name) = (question.subject.kind, question.subject.name());
        let mut found = Err(ApprovalError::Key(signed.kid().to_owned()));
        for approver in self.approvers.iter().filter(|approver| approver.may_answer(kind, name)) {
            for key in approver.keys.iter().filter(|key| key.has_kid(signed.kid()) && key.is_valid(now)) {
                found = match signed.check_signature(key.key()) {
                    Ok(()) if approver.name == signed.approval().approver => return Ok(approver),
                    Ok(()) => Err(ApprovalError::Approver),
                    Err(error) => Err(error),
                };
            }
        }
        found
    }

    /// Verifies a reader's proof and returns its approver.
    ///
    /// # Errors
    /// [`ApprovalError::Key`] if no approver signed it with a valid key.
    pub fn reader(&self, signed: &SignedReaderProof, now: Timestamp) -> Result<&Approver, ApprovalError> {
        let holds = |key: &&AgentKey| {
            key.has_kid(signed.kid()) && key.is_valid(now) && signed.check_signature(key.key()).is_ok()
        };
        let found = self.approvers.iter().find(|approver| approver.keys.iter().any(|key| holds(&key)));
        found.ok_or_else(|| ApprovalError::Key(signed.kid().to_owned()))
    }

    /// Returns the settings as JSON for the digest of the rules; `None` if nothing is configured.
    pub(super) fn describe(&self) -> Option<Value> {
        let Approvals { approvers, confirmations, commitments, amendments, time } = self;
        let is_set =
            !approvers.is_empty() || *confirmations != Decider::Client || *commitments || *amendments;
        is_set.then(|| {
            json!({
                "approvers": approvers.iter().map(Approver::describe).collect::<Vec<_>>(),
                "confirmations": confirmations.as_str(),
                "commitments": commitments,
                "amendments": amendments,
                "time": time.as_secs().to_string(),
            })
        })
    }
}
