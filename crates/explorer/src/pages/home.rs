//! The first page: the state of the log, and its newest entries.

use maud::html;

use crate::layout::{PageFrame, code, facts, time};
use crate::rows::{self, EntryRow};
use crate::text::line;

/// The state of the log.
#[derive(Clone, Debug, Default)]
pub struct HomePage {
    /// Leaves of the newest signed tree.
    pub size: u64,
    /// Root of that tree, hex; absent before the first checkpoint.
    pub root: Option<String>,
    /// Time of that tree (RFC 3339).
    pub at: Option<String>,
    /// Seconds since then.
    pub age_seconds: Option<u64>,
    /// Name and public URL of the log.
    pub url: String,
    /// The `iss` of the log's receipts.
    pub iss: String,
    /// Verifier key of the checkpoints (C2SP signed-note).
    pub checkpoint_key: String,
    /// Whether this process registers statements, in words.
    pub state: String,
    /// Number of witnesses, and of those that have cosigned lately.
    pub witnesses: (usize, usize),
    /// The newest entries; `None` if the caller may not read entries.
    pub newest: Option<Vec<EntryRow>>,
}

impl HomePage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let (all, fresh) = self.witnesses;
        let checkpoint = html! {
            @match &self.root {
                Some(root) => { (code(root)) " " a href="/checkpoint" { "signed note" } },
                None => { span.note { "No checkpoint is signed yet." } },
            }
        };
        let age = html! {
            (time(self.at.as_deref()))
            @if let Some(age) = self.age_seconds { " (" (in_words(age)) " ago)" }
        };
        let content = html! {
            (facts(&[
                ("Entries", html! { (self.size) }),
                ("Newest root", checkpoint),
                ("Newest checkpoint", age),
                ("Witnesses", html! {
                    @if all == 0 { "none" } @else { (fresh) " of " (all) " have cosigned lately" }
                    " " a href="/ui/checkpoints" { "Checkpoints and witnesses" }
                }),
                ("State", html! { (line(&self.state)) }),
                ("Issuer of receipts", code(&self.iss)),
                ("Checkpoint key", code(&self.checkpoint_key)),
                ("Address", code(&self.url)),
            ]))
            h2 { "Newest entries" }
            @match &self.newest {
                None => { p.note { "Reading entries here needs a token." } },
                Some(rows) if rows.is_empty() => { p.note { "The log has no entries yet." } },
                Some(rows) => {
                    (rows::list(rows))
                    p { a href="/ui/search" { "All entries, newest first" } }
                },
            }
        };
        frame.html(&format!("Log {}", self.url), "/ui", &content)
    }
}

/// A duration in its largest unit.
fn in_words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn a_duration_is_given_in_its_largest_unit() {
        let words = [0, 1, 59, 60, 3599, 3600, 200_000].map(in_words);
        assert_eq!(
            words,
            ["0 seconds", "1 second", "59 seconds", "1 minute", "59 minutes", "1 hour", "2 days"]
        );
    }
}
