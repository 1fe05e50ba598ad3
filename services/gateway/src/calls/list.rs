//! `tools/list` as one caller sees it (reading V-36): if the operator enables it, a caller with a commitment sees only
//! the tools that its commitment permits, and one without a commitment those that the operator's commitment permits.
//!
//! The tools of a list are noted before the list passes, so that a tool whose description has changed is not called.
//!
//! Hiding a tool protects nothing: a call is decided when it is made. A caller without any commitment sees all tools, so
//! that it knows which to commit to; so does a caller that only its signing key identifies, since this request is not
//! signed.

use admission::principal::Caller;
use admission::rules::Posture;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use vap::message::Scope;

use super::{Calls, Shared};
use crate::frame::error_code::INTERNAL_ERROR;
use crate::frame::reply::{self, Reply};
use crate::frame::{RawId, TOOLS_LIST};
use crate::relay::UPSTREAM_FAILED;
use crate::tools::{NotNoted, UnreadableList};

/// The part of a tool that is read.
#[derive(Deserialize)]
struct ListedTool {
    name: String,
}

impl Calls {
    /// Returns whether answers to this method are filtered.
    pub(super) fn filters(&self, method: &str) -> bool {
        self.offer.filter_tools && method == TOOLS_LIST
    }

    /// Returns whether the tools in answers to this method are noted.
    pub(super) fn watches(&self, method: &str) -> bool {
        self.rules.tools.watches() && method == TOOLS_LIST
    }

    /// Returns the tools that the caller may call as a JSON array, each as the upstream wrote it. `None` if it sees the
    /// whole list.
    pub(super) async fn tools_of(&self, caller: &Caller, reply: &Reply) -> Option<String> {
        let mut scopes = self.shared.writer.scopes_of(caller, &self.route).await;
        if scopes.is_empty() {
            scopes.push(self.rules.operator_commitment.as_ref()?.scope.clone());
        }
        let tools: Vec<&RawValue> = serde_json::from_str(reply.result_member("tools")?).ok()?;
        let shown: Vec<&str> =
            tools.iter().map(|tool| tool.get()).filter(|tool| is_allowed(&scopes, tool)).collect();
        Some(format!("[{}]", shown.join(",")))
    }
}

impl Shared {
    /// Notes the tools in an answer, if there are any, before the answer passes. After an error the answer must be
    /// withheld.
    pub(super) async fn note_tools(&self, route: &str, reply: &Reply) -> Result<(), NotNoted> {
        let rules = self.writer.rules_of(route);
        let Some(tools) = reply.result_member("tools").filter(|_| rules.tools.watches()) else {
            return Ok(());
        };
        match self.tools.listed(&self.writer, route, tools).await {
            Err(why) if rules.posture == Posture::Advisory => {
                tracing::warn!(%why, route, "a list of tools is passed on without being recorded");
                Ok(())
            }
            noted => noted,
        }
    }
}

/// Builds the error for a client in place of a list that is withheld.
pub(super) fn not_shown(id: &RawId, why: &NotNoted) -> Bytes {
    tracing::warn!(%why, "a list of tools is not passed on");
    let (code, words) = match why {
        // The server's fault: it lists more tools than the gateway accepts.
        NotNoted::Unreadable(UnreadableList::TooMany) => (UPSTREAM_FAILED, why.to_string()),
        NotNoted::DecisionWriter(error) if error.is_fault_of_server() => (UPSTREAM_FAILED, why.to_string()),
        NotNoted::Unreadable(why) => (INTERNAL_ERROR, why.to_string()),
        NotNoted::DecisionWriter(why) => {
            (INTERNAL_ERROR, format!("{}: the list of tools could not be noted", why.reason()))
        }
    };
    reply::error(Some(id), code, &words, None)
}

/// Returns whether one of the commitments permits a tool. A tool whose name cannot be read cannot be called.
fn is_allowed(scopes: &[Scope], tool: &str) -> bool {
    serde_json::from_str::<ListedTool>(tool)
        .is_ok_and(|tool| scopes.iter().any(|scope| scope.allows(&tool.name)))
}
