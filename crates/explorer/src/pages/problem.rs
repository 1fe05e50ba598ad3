//! Why a page cannot be shown.

use maud::html;

use crate::layout::{PageFrame, code, facts};
use crate::text::line;

/// A failed request.
#[derive(Clone, Debug)]
pub struct ProblemPage {
    /// The HTTP status.
    pub status: u16,
    /// Short title.
    pub title: String,
    /// Description of this occurrence.
    pub detail: String,
    /// Stable identifier of the cause.
    pub code: String,
    /// The request's number, which the service's log has too.
    pub request: String,
}

impl ProblemPage {
    /// Renders the page for readers that find the service at this path ([`PageFrame::path`]). It names no log: a caller
    /// that is refused learns nothing.
    pub fn html(&self, path: &str) -> String {
        let content = html! {
            p role="alert" { (line(&self.detail)) }
            (facts(&[
                ("Status", html! { (self.status) }),
                ("Code", html! { (code(&self.code)) ": " code { "tabellion help " (line(&self.code)) } " explains it" }),
                ("Request", code(&self.request)),
            ]))
        };
        PageFrame { log: "Tabellion".to_owned(), path: path.to_owned(), alarm: None }.html(
            &self.title,
            "",
            &content,
        )
    }
}
