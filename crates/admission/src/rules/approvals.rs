//! Who outside of the client may decide what, and what waits for them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::approval::{ApprovalError, Question, SignedApproval, SignedReader, SubjectKind};
use crate::glob::Pattern;
use crate::limits::QUESTION_SECONDS;
use crate::signature::AgentKey;

/// Who answers a question about a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decider {
    /// The client asks its user, as it says.
    #[default]
    Client,
    /// An approver signs.
    Approver,
}

impl Decider {
    /// The word of the configuration and of records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Decider::Client => "client",
            Decider::Approver => "approver",
        }
    }
}

/// Somebody who may approve.
#[derive(Clone, Debug)]
pub struct Approver {
    /// The name, which the record says.
    pub name: String,
    /// The tools; all of them where there is none.
    pub tools: Vec<Pattern>,
    /// The keys.
    pub keys: Vec<AgentKey>,
}

/// What waits for approvers on a route.
#[derive(Clone, Debug)]
pub struct Approvals {
    /// Those who may answer here.
    pub approvers: Vec<Approver>,
    /// Who answers what a rule with `confirm` or an unsure judge asks.
    pub confirmations: Decider,
    /// Whether commitments wait.
    pub commitments: bool,
    /// Whether amendments wait that no approver has signed.
    pub amendments: bool,
    /// How long a question can be answered.
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
    /// Whether it may answer a question of this kind, about this tool.
    #[must_use]
    pub fn may_answer(&self, kind: SubjectKind, tool: &str) -> bool {
        // Whoever is listed for some tools only decides about no commitment: it would admit all the others.
        match kind {
            SubjectKind::Call => {
                self.tools.is_empty() || self.tools.iter().any(|pattern| pattern.matches(tool))
            }
            SubjectKind::Commitment | SubjectKind::Amendment => self.tools.is_empty(),
        }
    }

    /// Whether it may answer a question about some tool of this pattern; without, about any.
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
    /// Whether somebody has a valid key and may answer a question of this kind, about this tool.
    #[must_use]
    pub fn anybody_may_answer(&self, kind: SubjectKind, tool: &str, now: Timestamp) -> bool {
        let is_there = |approver: &Approver| approver.keys.iter().any(|key| key.is_valid(now));
        self.approvers.iter().any(|approver| approver.may_answer(kind, tool) && is_there(approver))
    }

    /// The approver who signed the answer to a question, under the keys that are valid now.
    ///
    /// # Errors
    /// If nobody did who may answer it, or it answers something else.
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
            for key in approver.keys.iter().filter(|key| key.is_called(signed.kid()) && key.is_valid(now)) {
                found = match signed.check_signature(key.key()) {
                    Ok(()) if approver.name == signed.approval().approver => return Ok(approver),
                    Ok(()) => Err(ApprovalError::Approver),
                    Err(error) => Err(error),
                };
            }
        }
        found
    }

    /// The approver who shows itself to read questions.
    ///
    /// # Errors
    /// If it is none.
    pub fn reader(&self, signed: &SignedReader, now: Timestamp) -> Result<&Approver, ApprovalError> {
        let holds = |key: &&AgentKey| {
            key.is_called(signed.kid()) && key.is_valid(now) && signed.check_signature(key.key()).is_ok()
        };
        let found = self.approvers.iter().find(|approver| approver.keys.iter().any(|key| holds(&key)));
        found.ok_or_else(|| ApprovalError::Key(signed.kid().to_owned()))
    }

    /// What decides, for the digest of the rules; none where nothing was configured.
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
