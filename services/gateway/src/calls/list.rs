//! `tools/list` as one caller sees it (reading V-36): where the operator wants that, a caller with a commitment is shown what
//! that lets it call, and nothing else.
//!
//! What a list says of its tools is noted before it passes, so that a tool that says something else than before is not called.
//!
//! It hides, and protects nothing: what may be called is decided when it is. A caller without a commitment sees everything,
//! so that it knows what to commit to; so does one that only its signing key identifies, since this request is not signed.

use admission::message::Scope;
use admission::principal::Caller;
use admission::rules::Posture;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Calls, Shared};
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::tools::NotNoted;

/// The method.
pub const METHOD: &str = "tools/list";

/// The JSON-RPC code of a list that does not pass.
const INTERNAL_ERROR: i32 = -32603;

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

    /// Whether answers to this method say what is to be known of tools.
    pub(super) fn watches(&self, method: &str) -> bool {
        self.rules.tools.watches() && method == METHOD
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

impl Shared {
    /// Notes what an answer says of tools, if it does, before anybody reads it. An error: it must not be read, and why.
    pub(super) async fn note_tools(&self, route: &str, reply: &Reply) -> Result<(), NotNoted> {
        let rules = self.desk.rules_of(route);
        let Some(tools) = reply.result_member("tools").filter(|_| rules.tools.watches()) else {
            return Ok(());
        };
        match self.tools.listed(&self.desk, route, tools).await {
            Err(why) if rules.posture == Posture::Advisory => {
                tracing::warn!(%why, route, "a list of tools passes without being noted");
                Ok(())
            }
            noted => noted,
        }
    }
}

/// What a client gets in the place of a list that must not be read.
pub(super) fn not_shown(id: &RawId, why: &NotNoted) -> Bytes {
    tracing::warn!(%why, "a list of tools does not pass");
    let words = match why {
        NotNoted::Unreadable(why) => why.to_string(),
        NotNoted::Desk(why) => format!("{}: the list of tools could not be noted", why.reason()),
    };
    reply::error(Some(id), INTERNAL_ERROR, &words, None)
}

/// Whether one of the commitments lets a tool be called. One whose name cannot be read cannot be called either.
fn is_allowed(scopes: &[Scope], tool: &str) -> bool {
    serde_json::from_str::<Tool>(tool).is_ok_and(|tool| scopes.iter().any(|scope| scope.allows(&tool.name)))
}
