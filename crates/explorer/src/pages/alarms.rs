//! Alarms: what is wrong with the log, and contradictions of issuers.

use maud::{Markup, html};

use crate::layout::{PageFrame, code, entry_link, next_link, time};
use crate::text::line;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct AlarmsPage {
    /// Why registration stopped, if it did.
    pub obstacles: Vec<String>,
    /// Contradictions between what is stored and what was signed.
    pub findings: Vec<String>,
    /// Number of further findings.
    pub omitted: u64,
    /// Statements that were refused because they contradict entries of the same issuer.
    pub contradictions: Vec<IssuerContradiction>,
    /// Address of more contradictions.
    pub next: Option<String>,
}

/// Two statements of one issuer of which at most one can be true.
#[derive(Clone, Debug)]
pub struct IssuerContradiction {
    /// Number of the report.
    pub number: u64,
    /// The rule that the refused statement breaks.
    pub rule: Option<String>,
    /// Entry ID of the registered statement.
    pub registered: String,
    /// Digest of the refused statement.
    pub refused: String,
    /// When it was refused (RFC 3339).
    pub at: Option<String>,
}

impl AlarmsPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            h2 { "The log itself" }
            @if self.findings.is_empty() && self.obstacles.is_empty() {
                p.good { "Nothing was found that contradicts what the log has signed." }
                p.note {
                    "This is the service's own word. Monitors and witnesses check from outside that everyone sees the same log: "
                    a href="/ui/checkpoints" { "Checkpoints and witnesses" }
                }
            } @else {
                (self.alarm())
            }
            h2 { "Contradictions of issuers" }
            p.note { "Statements that were refused because their issuer had signed the contrary. Both signatures are evidence." }
            @if self.contradictions.is_empty() { p { "None was reported." } }
            ol.timeline { @for one in &self.contradictions { li.gap { (contradiction(one)) } } }
            (next_link(self.next.as_deref(), "Later reports"))
            p { a href="/v1/equivocations" { "Reports as JSON, with the refused statements" } }
        };
        frame.html("Alarms", "/ui/alarms", &content)
    }

    fn alarm(&self) -> Markup {
        html! {
            div.alarm {
                ul {
                    @for obstacle in &self.obstacles { li { (line(obstacle)) } }
                    @for finding in &self.findings { li { (line(finding)) } }
                    @if self.omitted > 0 { li { "and " (self.omitted) " more findings" } }
                }
            }
            p {
                "Do not rely on new receipts of this log until its operator has explained this. Keep the receipts and "
                "checkpoints that you have: they are evidence."
            }
        }
    }
}

fn contradiction(one: &IssuerContradiction) -> Markup {
    html! {
        p.head { "Report " (one.number) " " (time(one.at.as_deref())) }
        p { "Rule " (code(one.rule.as_deref().unwrap_or("unknown"))) }
        p { "Registered: " (entry_link(&one.registered, &one.registered)) }
        p { "Refused: " (code(&one.refused)) }
    }
}
