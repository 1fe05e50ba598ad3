//! The state of the browser, and what keys and answers of the log change in it. Nothing here waits or draws.

use display::is_plain;
use ratatui::layout::Size;
use ratatui::termion::event::Key;
use verifier::CheckpointVerdict;

use super::entry_list::EntryList;
use super::movement::Movement;
use super::opened_entry::OpenedEntry;
use super::requests::{ListPage, LogAnswer, LogRequest};
use crate::commands::entry::search::Filters;

/// Number of lines around the rows of the list: title, headings, checkpoint and keys.
const FRAME_LINES: u16 = 4;
/// Maximum length in characters of the terms of a search.
const TERMS_LENGTH: usize = 500;

/// The list, the opened entry, and the state of the connection.
#[derive(Debug, Default)]
pub struct Browser {
    /// The URL of the log.
    pub log: String,
    /// The entries.
    pub list: EntryList,
    /// The terms of the search whose entries are in the list; empty for all entries.
    pub terms: String,
    /// The opened entry.
    pub page: Option<Box<OpenedEntry>>,
    /// The terms that are being typed.
    pub prompt: Option<String>,
    /// The newest checkpoint, verified, or why there is none; `None` before the first answer.
    pub checkpoint: Option<Result<Box<CheckpointVerdict>, String>>,
    /// What is being fetched, or why the last request failed.
    pub notice: Option<String>,
    /// Why the log cannot be followed at the moment.
    pub lost: Option<String>,
    /// The terms of a search that is not answered yet.
    searching: Option<String>,
    /// The ID of an entry that is being fetched.
    fetching: Option<String>,
    /// True while the requests of [`refresh`](Self::refresh) run.
    is_refreshing: bool,
    is_closed: bool,
}

impl Browser {
    /// Creates a browser of the log at this URL with its newest entries.
    pub fn new(log: &str, newest: ListPage) -> Self {
        let list = EntryList::new(newest.rows, newest.older, 1);
        Self { log: log.trim_end_matches('/').to_owned(), list, ..Self::default() }
    }

    /// True after the person has left.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Fits list and opened entry to the size of the terminal.
    pub fn fit(&mut self, size: Size) {
        let rows = size.height.saturating_sub(FRAME_LINES);
        self.list.fit(rows.into());
        if let Some(page) = &mut self.page {
            // An opened entry has no headings.
            page.fit(size.width.into(), usize::from(rows) + 1);
        }
    }

    /// Returns the requests that look for new entries and the newest checkpoint; none while earlier ones run.
    pub fn refresh(&mut self) -> Vec<LogRequest> {
        match std::mem::replace(&mut self.is_refreshing, true) {
            true => Vec::new(),
            false => vec![LogRequest::Newest(self.terms.clone()), LogRequest::Checkpoint],
        }
    }

    /// Handles a key. Returns the requests that it makes necessary.
    pub fn press(&mut self, key: Key) -> Vec<LogRequest> {
        if key == Key::Ctrl('c') {
            self.is_closed = true;
            return Vec::new();
        }
        self.notice = None;
        match self.prompt.take() {
            Some(prompt) => self.press_in_prompt(prompt, key),
            None if self.page.is_some() => self.press_in_page(key),
            None => self.press_in_list(key),
        }
    }

    fn press_in_list(&mut self, key: Key) -> Vec<LogRequest> {
        match key {
            Key::Char('q') => self.is_closed = true,
            Key::Char('/') => self.prompt = Some(self.terms.clone()),
            Key::Char('\n') | Key::Right => return self.open(),
            Key::Esc => return self.go_back(),
            _ => {
                if let Some(movement) = Movement::of(key) {
                    self.list.select(movement);
                }
            }
        }
        let terms = self.terms.clone();
        self.list.wanted_older().map(|path| LogRequest::Older { terms, path }).into_iter().collect()
    }

    fn press_in_page(&mut self, key: Key) -> Vec<LogRequest> {
        match key {
            Key::Char('q') => self.is_closed = true,
            Key::Esc | Key::Left | Key::Backspace => self.page = None,
            _ => {
                if let (Some(page), Some(movement)) = (&mut self.page, Movement::of(key)) {
                    page.scroll(movement);
                }
            }
        }
        Vec::new()
    }

    fn press_in_prompt(&mut self, mut prompt: String, key: Key) -> Vec<LogRequest> {
        match key {
            Key::Esc => return Vec::new(),
            Key::Char('\n') => return self.search(prompt.trim().to_owned()),
            Key::Backspace => {
                prompt.pop();
            }
            Key::Char(c) if is_plain(c) && prompt.chars().count() < TERMS_LENGTH => prompt.push(c),
            _ => {}
        }
        self.prompt = Some(prompt);
        Vec::new()
    }

    /// Requests the selected entry.
    fn open(&mut self) -> Vec<LogRequest> {
        let Some(row) = self.list.selected() else { return Vec::new() };
        self.notice = Some(format!("fetching the entry at leaf {} …", row.index));
        self.fetching = Some(row.id.clone());
        vec![LogRequest::Entry(row.id.clone())]
    }

    /// Gives up what is being fetched, otherwise the search.
    fn go_back(&mut self) -> Vec<LogRequest> {
        match self.fetching.take().or(self.searching.take()) {
            None if !self.terms.is_empty() => self.search(String::new()),
            _ => Vec::new(),
        }
    }

    fn search(&mut self, terms: String) -> Vec<LogRequest> {
        if let Err(why) = Filters::of_terms(&terms) {
            self.notice = Some(why);
            self.prompt = Some(terms);
            return Vec::new();
        }
        self.notice = Some("searching …".to_owned());
        self.searching = Some(terms.clone());
        vec![LogRequest::Newest(terms)]
    }

    /// Takes an answer of the log.
    pub fn take(&mut self, answer: LogAnswer) {
        match answer {
            LogAnswer::Newest(terms, page) if self.searching.as_ref() == Some(&terms) => {
                self.found(terms, page)
            }
            LogAnswer::Newest(terms, page) if self.terms == terms => match page {
                Ok(page) => {
                    self.lost = None;
                    self.list.update(page.rows, page.older);
                }
                Err(why) => self.lost = Some(why),
            },
            LogAnswer::Older { terms, path, page } if self.terms == terms => match page {
                Ok(page) => self.list.append(page.rows, page.older),
                Err(why) => {
                    self.notice = Some(why);
                    self.list.keep_older(path);
                }
            },
            LogAnswer::Newest(..) | LogAnswer::Older { .. } => {}
            LogAnswer::Entry(id, page) if self.fetching.as_ref() == Some(&id) => self.opened(page),
            LogAnswer::Entry(..) => {}
            LogAnswer::Checkpoint(checkpoint) => {
                self.is_refreshing = false;
                self.checkpoint = Some(checkpoint);
            }
        }
    }

    fn found(&mut self, terms: String, page: Result<ListPage, String>) {
        self.searching = None;
        self.notice = match page {
            Ok(page) => {
                self.list = EntryList::new(page.rows, page.older, 1);
                self.terms = terms;
                None
            }
            Err(why) => Some(why),
        };
    }

    fn opened(&mut self, page: Result<Box<OpenedEntry>, String>) {
        self.fetching = None;
        self.notice = None;
        match page {
            Ok(page) => self.page = Some(page),
            Err(why) => self.notice = Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::entry_list::EntryRow;
    use super::*;

    fn page(indexes: impl Iterator<Item = u64>, older: Option<&str>) -> ListPage {
        let row = |index: u64| EntryRow::of(&json!({ "index": index, "entry_id": format!("id-{index}") }));
        ListPage { rows: indexes.map(row).collect(), older: older.map(str::to_owned) }
    }

    fn browser() -> Browser {
        let mut browser = Browser::new("https://log.example/", page((0..30).rev(), Some("older")));
        browser.fit(Size::new(80, 24));
        browser
    }

    fn typed(browser: &mut Browser, text: &str) -> Vec<LogRequest> {
        text.chars().map(Key::Char).flat_map(|key| browser.press(key)).collect()
    }

    #[test]
    fn enter_requests_the_selected_entry_and_escape_gives_it_up() {
        let mut browser = browser();
        browser.press(Key::Down);
        assert_eq!(browser.press(Key::Char('\n')), [LogRequest::Entry("id-28".into())]);
        browser.press(Key::Esc);
        let page = OpenedEntry::not_served("id-28", &json!({}), "erased");
        browser.take(LogAnswer::Entry("id-28".into(), Ok(Box::new(page))));
        assert!(browser.page.is_none());
    }

    #[test]
    fn a_search_replaces_the_list_when_it_is_answered() {
        let mut browser = browser();
        assert_eq!(typed(&mut browser, "/tool=rm\n"), [LogRequest::Newest("tool=rm".into())]);
        assert_eq!(browser.terms, "");
        browser.take(LogAnswer::Newest("tool=rm".into(), Ok(page([3, 1].into_iter(), None))));
        assert_eq!((browser.terms.as_str(), browser.list.extent()), ("tool=rm", (2, false)));
        assert_eq!(browser.press(Key::Esc), [LogRequest::Newest(String::new())]);
    }

    #[test]
    fn a_search_with_an_unknown_name_stays_in_the_prompt() {
        let mut browser = browser();
        assert!(typed(&mut browser, "/colour=red\n").is_empty());
        assert_eq!(browser.prompt.as_deref(), Some("colour=red"));
        assert!(browser.notice.unwrap().contains("agent"));
    }

    #[test]
    fn answers_to_an_earlier_search_are_ignored() {
        let mut browser = browser();
        browser.take(LogAnswer::Newest("tool=rm".into(), Ok(page([99].into_iter(), None))));
        let older =
            LogAnswer::Older { terms: "tool=rm".into(), path: "p".into(), page: Ok(page(0..1, None)) };
        browser.take(older);
        assert_eq!(browser.list.extent(), (30, true));
    }

    #[test]
    fn a_lost_connection_is_noted_until_the_log_answers_again() {
        let mut browser = browser();
        assert_eq!(browser.refresh().len(), 2);
        assert!(browser.refresh().is_empty());
        browser.take(LogAnswer::Newest(String::new(), Err("cannot reach the service".into())));
        browser.take(LogAnswer::Checkpoint(Err("cannot reach the service".into())));
        assert!(browser.lost.is_some());
        assert_eq!(browser.refresh().len(), 2);
        browser.take(LogAnswer::Newest(String::new(), Ok(page((0..31).rev(), None))));
        assert!(browser.lost.is_none());
        assert_eq!(browser.list.selected().unwrap().index, 30);
    }

    #[test]
    fn the_end_of_the_list_requests_older_entries_again_after_a_failure() {
        let mut browser = browser();
        let older = LogRequest::Older { terms: String::new(), path: "older".into() };
        assert_eq!(browser.press(Key::End), std::slice::from_ref(&older));
        assert!(browser.press(Key::End).is_empty());
        let failed = LogAnswer::Older { terms: String::new(), path: "older".into(), page: Err("no".into()) };
        browser.take(failed);
        assert_eq!(browser.press(Key::End), [older]);
    }

    #[test]
    fn q_leaves_the_list_and_is_a_letter_in_the_prompt() {
        let mut browser = browser();
        typed(&mut browser, "/q");
        assert!(!browser.is_closed());
        browser.press(Key::Esc);
        browser.press(Key::Char('q'));
        assert!(browser.is_closed());
    }
}
