//! Drawing of the browser: title, rows or the opened entry, the checkpoint, and the keys.

use std::fmt::Display;

use display::{counted, safe};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};
use verifier::{CheckName, CheckState, CheckpointVerdict, VerificationOutcome};

use super::browser::Browser;
use super::entry_list::EntryRow;
use super::opened_entry::OpenedEntry;
use crate::commands::entry::table::{COMMITTED, CONTENT_TYPE, ISSUER, LEAF, SUBJECT};

/// Number of hexadecimal digits of a root in the status line.
const ROOT_DIGITS: usize = 12;
/// The keys of the list.
const LIST_KEYS: &str = "↑↓ PgUp PgDn move   Enter open   / search   Esc all entries   q quit";
/// The keys of an opened entry.
const PAGE_KEYS: &str = "↑↓ PgUp PgDn scroll   Esc back   q quit";

/// Draws the browser, in colours if `coloured`.
pub fn draw(frame: &mut Frame<'_>, browser: &Browser, coloured: bool) {
    let [title, content, checkpoint, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let colours = Colours { coloured };
    match &browser.page {
        Some(page) => {
            frame.render_widget(page_title(page, colours).bold(), title);
            frame.render_widget(Paragraph::new(page.visible().join("\n")), content);
        }
        None => {
            frame.render_widget(list_title(browser).bold(), title);
            draw_list(frame, browser, content);
        }
    }
    frame.render_widget(checkpoint_line(browser, colours), checkpoint);
    draw_bottom(frame, browser, colours, keys);
}

/// Colours of outcomes, which are left out if the terminal should have none.
#[derive(Clone, Copy)]
struct Colours {
    coloured: bool,
}

impl Colours {
    fn outcome(self, outcome: VerificationOutcome, text: String) -> Span<'static> {
        match outcome {
            VerificationOutcome::Verified => self.span(text, Color::Green),
            _ => self.span(text, Color::Red),
        }
    }

    fn span(self, text: String, colour: Color) -> Span<'static> {
        let style = if self.coloured { Style::new().fg(colour) } else { Style::new() };
        Span::styled(text, style)
    }
}

fn list_title(browser: &Browser) -> Line<'static> {
    let (rows, has_older) = browser.list.extent();
    let entries = match has_older {
        true => format!("{rows}+ entries"),
        false => counted(rows, "entry", "entries"),
    };
    let search = match browser.terms.as_str() {
        "" => String::new(),
        terms => format!("   search: {}", safe(terms)),
    };
    Line::from(format!("{}   {entries}{search}", safe(&browser.log)))
}

fn page_title(page: &OpenedEntry, colours: Colours) -> Line<'static> {
    let outcome = match page.outcome {
        Some(outcome @ VerificationOutcome::Verified) => colours.outcome(outcome, "verified".to_owned()),
        Some(outcome) => colours.outcome(outcome, "not verified".to_owned()),
        None => colours.outcome(VerificationOutcome::NotVerified, "not verified".to_owned()),
    };
    Line::from(vec![outcome, Span::raw("  "), Span::raw(page.id.clone())])
}

fn draw_list(frame: &mut Frame<'_>, browser: &Browser, area: Rect) {
    let selected = browser.list.selected_line();
    let rows = browser.list.visible().iter().enumerate().map(|(line, row)| {
        let drawn = cells(row);
        if line == selected { drawn.reversed() } else { drawn }
    });
    let widths = [
        Constraint::Length(LEAF.width()),
        Constraint::Length(COMMITTED.width()),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ];
    let texts = [COMMITTED, CONTENT_TYPE, ISSUER, SUBJECT].map(|column| column.heading().to_owned());
    let headings = Row::new([at_the_right(LEAF.heading())].into_iter().chain(texts)).bold();
    frame.render_widget(Table::new(rows, widths).header(headings), area);
}

fn cells(row: &EntryRow) -> Row<'_> {
    Row::new([
        at_the_right(row.index).into(),
        row.at.as_str().into(),
        row.content_type.as_str().into(),
        row.issuer.as_str().into(),
        Line::from(row.subject.as_str()),
    ])
}

/// Formats a value at the right of the leaves' column.
fn at_the_right(value: impl Display) -> String {
    format!("{value:>width$}", width = usize::from(LEAF.width()))
}

fn checkpoint_line(browser: &Browser, colours: Colours) -> Line<'static> {
    match &browser.checkpoint {
        None => Line::from("checkpoint: fetching …"),
        Some(Ok(verdict)) => verified_checkpoint(verdict, colours),
        Some(Err(why)) => Line::from(colours.span(format!("checkpoint: {}", safe(why)), Color::Red)),
    }
}

fn verified_checkpoint(verdict: &CheckpointVerdict, colours: Colours) -> Line<'static> {
    let head = verdict.checkpoint.as_ref().map(|facts| {
        let root: String = facts.root.chars().take(ROOT_DIGITS).collect();
        format!("checkpoint: size {}, root {root}…, ", facts.tree_size)
    });
    let outcome = match (verdict.outcome, verdict.reason) {
        (VerificationOutcome::Verified, _) => "verified".to_owned(),
        (_, Some(reason)) => format!("not verified [{reason}]"),
        (_, None) => "not verified".to_owned(),
    };
    Line::from(vec![
        Span::raw(head.unwrap_or_else(|| "checkpoint: ".to_owned())),
        colours.outcome(verdict.outcome, outcome),
        Span::raw(format!(", {}", witnesses(verdict))),
    ])
}

fn witnesses(verdict: &CheckpointVerdict) -> String {
    let check = verdict.checks.iter().find(|check| check.name == CheckName::Witnesses);
    match check {
        Some(check) if check.state != CheckState::NotDone => format!("witnesses {}", safe(&check.detail)),
        _ => "witnesses not checked".to_owned(),
    }
}

fn draw_bottom(frame: &mut Frame<'_>, browser: &Browser, colours: Colours, area: Rect) {
    if let Some(prompt) = &browser.prompt
        && browser.notice.is_none()
    {
        // The end of a long prompt remains visible.
        let line = format!("/{prompt}");
        let hidden = line.chars().count().saturating_sub(usize::from(area.width.saturating_sub(1)));
        let line = Line::from(line.chars().skip(hidden).collect::<String>());
        let column = u16::try_from(line.width()).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        frame.set_cursor_position((area.x + column, area.y));
        return frame.render_widget(line, area);
    }
    let line = match (&browser.notice, &browser.lost) {
        (Some(notice), _) => Line::from(safe(notice).into_owned()),
        (None, Some(lost)) => {
            Line::from(colours.span(format!("connection lost, retrying: {}", safe(lost)), Color::Red))
        }
        (None, None) if browser.page.is_some() => Line::from(PAGE_KEYS),
        (None, None) => Line::from(LIST_KEYS),
    };
    frame.render_widget(line, area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::layout::Size;
    use ratatui::termion::event::Key;
    use serde_json::json;
    use verifier::{Check, CheckpointFacts};

    use super::super::requests::{ListPage, LogAnswer};
    use super::*;

    /// Draws the browser on a terminal of 80 columns and 24 lines, and returns the lines.
    fn drawn(browser: &mut Browser) -> Vec<String> {
        browser.fit(Size::new(80, 24));
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, browser, true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..24).map(line).map(|line| line.trim_end().to_owned()).collect()
    }

    fn browser() -> Browser {
        let row = |index: u64| {
            EntryRow::of(&json!({
                "index": index, "at": "2026-11-26T10:00:00Z", "content_type": "application/json",
                "iss": "https://a.example", "sub": "a\u{1b}[2Jb"
            }))
        };
        Browser::new("https://log.example/", ListPage { rows: (0..40).rev().map(row).collect(), older: None })
    }

    #[test]
    fn the_list_has_the_newest_entry_first_and_hostile_text_is_escaped() {
        let lines = drawn(&mut browser());
        assert_eq!(lines[0], "https://log.example   40 entries");
        assert!(lines[1].starts_with("    leaf committed            content type"), "{lines:#?}");
        assert!(lines[2].starts_with("      39 2026-11-26T10:00:00Z application/json"), "{lines:#?}");
        assert!(lines[2].ends_with("a\\u{1b}[2Jb"), "{lines:#?}");
        assert!(lines[21].starts_with("      20 "), "{lines:#?}");
        assert_eq!((lines[22].as_str(), lines[23].as_str()), ("checkpoint: fetching …", LIST_KEYS));
    }

    #[test]
    fn the_status_line_has_the_checkpoint_and_the_witnesses() {
        let mut browser = browser();
        let facts = CheckpointFacts {
            origin: "log.example".into(),
            tree_size: 40,
            root: "0123456789abcdef".into(),
            cosigned: Vec::new(),
        };
        let verdict = CheckpointVerdict {
            outcome: VerificationOutcome::Verified,
            reason: None,
            checkpoint: Some(facts),
            checks: vec![Check {
                name: CheckName::Witnesses,
                receipt: None,
                state: CheckState::Ok,
                code: None,
                detail: "2 of 3".into(),
            }],
        };
        browser.take(LogAnswer::Checkpoint(Ok(Box::new(verdict))));
        let expected = "checkpoint: size 40, root 0123456789ab…, verified, witnesses 2 of 3";
        assert_eq!(drawn(&mut browser)[22], expected);
    }

    #[test]
    fn an_opened_entry_fills_the_screen_and_the_prompt_is_in_the_last_line() {
        let mut browser = browser();
        browser.press(Key::Char('\n'));
        assert_eq!(drawn(&mut browser)[23], "fetching the entry at leaf 39 …");
        let page = OpenedEntry::not_served("-", &json!({ "sub": "hello" }), "erased");
        browser.take(LogAnswer::Entry("-".into(), Ok(Box::new(page))));
        let lines = drawn(&mut browser);
        assert_eq!(lines[0], "not verified  -");
        assert!(lines.iter().any(|line| line == "sub  hello"), "{lines:#?}");
        browser.press(Key::Esc);
        browser.press(Key::Char('/'));
        browser.press(Key::Char('x'));
        assert_eq!(drawn(&mut browser)[23], "/x");
    }

    #[test]
    fn a_lost_connection_is_in_the_last_line() {
        let mut browser = browser();
        browser.take(LogAnswer::Newest(String::new(), Err("cannot reach the service".into())));
        assert_eq!(drawn(&mut browser)[23], "connection lost, retrying: cannot reach the service");
    }

    #[test]
    fn a_terminal_that_is_too_small_is_no_error() {
        for (width, height) in [(1, 1), (10, 3), (200, 5)] {
            let mut browser = browser();
            browser.fit(Size::new(width, height));
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &browser, false)).unwrap();
        }
    }
}
