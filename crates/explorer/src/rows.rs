//! Rows of entries in lists.

use maud::{Markup, html};

use crate::layout::{entry_link, issuer_link, session_link, time};
use crate::text::{brief, line};

/// An entry in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryRow {
    /// The entry ID.
    pub id: String,
    /// The leaf.
    pub leaf: u64,
    /// Time of the commit (RFC 3339).
    pub at: Option<String>,
    /// Content type of the payload.
    pub content_type: Option<String>,
    /// The issuer.
    pub issuer: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// The session that the entry names.
    pub session: Option<String>,
    /// Short facts, such as a verdict, with their names.
    pub facts: Vec<(String, String)>,
    /// Whether the statement was erased.
    pub erased: bool,
}

/// Names of the content types that the log knows.
const KINDS: [(&str, &str); 19] = [
    ("application/vrf+cbor", "Verification receipt"),
    ("application/vrf+json", "Verification receipt"),
    ("application/aer+json", "Execution receipt"),
    ("application/agent-conversation", "Conversation"),
    ("application/vap-audit+json", "Audit record"),
    ("application/vap-verdict+json", "Verdict"),
    ("application/jwk-set+json", "Key set"),
    ("application/agentroa-registry+json", "AgentROA registry"),
    ("application/agentroa-policy+json", "AgentROA policy"),
    ("application/agentroa-chain+json", "Delegation chain"),
    ("application/vnd.tabellion.policy+json", "Registration policy"),
    ("application/vnd.tabellion.erasure+json", "Erasure"),
    ("application/vnd.tabellion.clock-correction+json", "Clock correction"),
    ("application/vnd.tabellion.operator-action+json", "Operator's action"),
    ("application/vnd.tabellion.operator-approval+json", "Operator's approval"),
    ("application/vnd.tabellion.index-head+cbor", "Head of the search index"),
    ("application/cll-checkpoint+cbor", "Agent's checkpoint"),
    ("text/x-c2sp-checkpoint", "Agent's checkpoint"),
    ("application/json", "JSON"),
];

/// The name of a kind of entry: by its content type, or the type itself.
pub fn kind(content_type: Option<&str>) -> &str {
    let Some(content_type) = content_type else { return "Statement" };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    KINDS.iter().find(|(known, _)| *known == essence).map_or(content_type, |(_, name)| name)
}

/// A list of entries.
pub fn list(rows: &[EntryRow]) -> Markup {
    html! {
        ol.rows {
            @for row in rows { li { (entry(row)) } }
        }
    }
}

/// One entry of a list.
pub fn entry(row: &EntryRow) -> Markup {
    html! {
        p.head {
            (entry_link(&row.id, &format!("{} at leaf {}", kind(row.content_type.as_deref()), row.leaf)))
            " " (time(row.at.as_deref()))
        }
        p.names {
            @if let Some(issuer) = &row.issuer { span { "by " (issuer_link(issuer)) } " " }
            @if let Some(subject) = &row.subject { span { "about " (brief(subject)) } " " }
            @if let Some(session) = &row.session { span { "in session " (session_link(session)) } }
        }
        p.facts {
            @if row.erased { span.fact { "erased" } " " }
            @for (name, value) in &row.facts {
                span.fact { (line(name)) " " b { (brief(value)) } } " "
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_by_the_content_type_without_its_parameters() {
        assert_eq!(kind(Some("application/aer+json; version=1")), "Execution receipt");
        assert_eq!(kind(Some("text/x-unknown")), "text/x-unknown");
        assert_eq!(kind(None), "Statement");
    }
}
