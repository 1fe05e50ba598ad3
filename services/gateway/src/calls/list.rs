//! `tools/list` as one caller sees it (reading V-36): where the operator wants that, a caller with a commitment is shown what
//! that lets it call, and nothing else.
//!
//! It hides, and protects nothing: what may be called is decided when it is. A caller without a commitment sees everything,
//! so that it knows what to commit to; so does one that only its signing key identifies, since this request is not signed.

use admission::message::Scope;
use admission::principal::Caller;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Calls;
use crate::frame::reply::Reply;

/// The method.
pub const METHOD: &str = "tools/list";

/// As much of a tool as is looked at.
#[derive(Deserialize)]
struct Tool {
    name: String,
}

impl Calls {
    /// Whether answers to this method are filtered.
    pub(super) fn filters(&self, method: &str) -> bool {
        self.offer.filter_tools && method == METHOD
    }

    /// The list of tools that the caller may call, each as the upstream wrote it. None: it is shown the whole list.
    pub(super) async fn tools_of(&self, caller: &Caller, reply: &Reply) -> Option<String> {
        let scopes = self.shared.desk.scopes_of(caller, &self.route).await;
        if scopes.is_empty() {
            return None;
        }
        let tools: Vec<&RawValue> = serde_json::from_str(reply.result_member("tools")?).ok()?;
        let shown: Vec<&str> =
            tools.iter().map(|tool| tool.get()).filter(|tool| is_allowed(&scopes, tool)).collect();
        Some(format!("[{}]", shown.join(",")))
    }
}

/// Whether one of the commitments lets a tool be called. One whose name cannot be read cannot be called either.
fn is_allowed(scopes: &[Scope], tool: &str) -> bool {
    serde_json::from_str::<Tool>(tool).is_ok_and(|tool| scopes.iter().any(|scope| scope.allows(&tool.name)))
}
