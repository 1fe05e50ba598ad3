//! The list of entries: rows newest first, the selected one, and those that fit on the screen.

use std::ops::Range;

use serde_json::Value as Json;

use super::movement::Movement;
use crate::show::{number, text};

/// An entry as the list has it. All texts are escaped for terminals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// The leaf index.
    pub index: u64,
    /// The entry ID, in hexadecimal.
    pub id: String,
    /// The time of the commit (RFC 3339).
    pub at: String,
    /// The content type.
    pub content_type: String,
    /// The issuer (`iss`).
    pub issuer: String,
    /// The subject (`sub`).
    pub subject: String,
}

impl EntryRow {
    /// Reads a row of `GET /v1/entries`.
    pub fn of(entry: &Json) -> Self {
        let [id, at, content_type, issuer, subject] =
            ["entry_id", "at", "content_type", "iss", "sub"].map(|name| text(entry, name));
        Self { index: number(entry, "index"), id, at, content_type, issuer, subject }
    }
}

/// The rows, and which of them is selected.
#[derive(Debug, Default)]
pub struct EntryList {
    rows: Vec<EntryRow>,
    /// Position of the selected row.
    selected: usize,
    /// Position of the first row on the screen.
    first: usize,
    /// Number of rows on the screen.
    height: usize,
    /// The path of older entries; `None` if the oldest are there.
    older: Option<String>,
}

impl EntryList {
    /// Creates a list that begins with its first row selected.
    pub fn new(rows: Vec<EntryRow>, older: Option<String>, height: usize) -> Self {
        Self { rows, older, height, ..Self::default() }
    }

    /// The selected row; `None` if there are no rows.
    pub fn selected(&self) -> Option<&EntryRow> {
        self.rows.get(self.selected)
    }

    /// Position of the selected row among those on the screen.
    pub fn selected_line(&self) -> usize {
        self.selected - self.first
    }

    /// The rows on the screen.
    pub fn visible(&self) -> &[EntryRow] {
        &self.rows[self.range()]
    }

    /// Number of rows, and whether there are older ones in the log.
    pub fn extent(&self) -> (usize, bool) {
        (self.rows.len(), self.older.is_some())
    }

    /// Sets the number of rows on the screen, and keeps the selected row on it.
    pub fn fit(&mut self, height: usize) {
        self.height = height.max(1);
        self.scroll();
    }

    /// Moves the selection.
    pub fn select(&mut self, movement: Movement) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = movement.apply(self.selected, self.height, last);
        self.scroll();
    }

    /// Returns the path of older entries if the selection is near the end; once for each path.
    pub fn wanted_older(&mut self) -> Option<String> {
        let is_near_end = self.selected + self.height >= self.rows.len();
        if is_near_end { self.older.take() } else { None }
    }

    /// Adds the rows that follow the last one.
    pub fn append(&mut self, rows: Vec<EntryRow>, older: Option<String>) {
        self.rows.extend(rows);
        self.older = older;
    }

    /// Lets `older` be requested again, after a failure.
    pub fn keep_older(&mut self, older: String) {
        self.older = Some(older);
    }

    /// Takes the newest rows. Those that are not there yet are put before the others, and the selection stays on its
    /// entry, except that the newest row stays selected. If there may be entries between both, the list begins anew.
    pub fn update(&mut self, rows: Vec<EntryRow>, older: Option<String>) {
        let newest = self.rows.first().map(|row| row.index);
        let is_joined = rows.iter().any(|row| newest.is_some_and(|newest| row.index <= newest));
        if !is_joined {
            if !rows.is_empty() {
                *self = Self::new(rows, older, self.height);
            }
            return;
        }
        let new: Vec<EntryRow> =
            rows.into_iter().filter(|row| newest.is_some_and(|newest| row.index > newest)).collect();
        if self.selected > 0 {
            self.selected += new.len();
            self.first += new.len();
        }
        self.rows.splice(0..0, new);
        self.scroll();
    }

    fn scroll(&mut self) {
        let lowest = (self.selected + 1).saturating_sub(self.height.max(1));
        self.first = self.first.clamp(lowest, self.selected);
    }

    fn range(&self) -> Range<usize> {
        self.first..self.rows.len().min(self.first + self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(indexes: impl Iterator<Item = u64>) -> Vec<EntryRow> {
        indexes.map(|index| EntryRow::of(&serde_json::json!({ "index": index }))).collect()
    }

    fn list(indexes: impl Iterator<Item = u64>) -> EntryList {
        EntryList::new(rows(indexes), Some("older".to_owned()), 3)
    }

    fn visible(list: &EntryList) -> Vec<u64> {
        list.visible().iter().map(|row| row.index).collect()
    }

    #[test]
    fn the_selected_row_is_always_on_the_screen() {
        let mut list = list((0..10).rev());
        list.select(Movement::Lines(4));
        assert_eq!((visible(&list), list.selected_line()), (vec![7, 6, 5], 2));
        list.select(Movement::Screens(-1));
        assert_eq!((visible(&list), list.selected_line()), (vec![8, 7, 6], 0));
        list.fit(1);
        assert_eq!(visible(&list), [8]);
        list.select(Movement::Lines(isize::MAX));
        assert_eq!(list.selected().unwrap().index, 0);
        list.select(Movement::Lines(isize::MIN));
        assert_eq!(list.selected().unwrap().index, 9);
    }

    #[test]
    fn new_entries_do_not_move_the_selection_except_at_the_top() {
        let mut list = list((0..5).rev());
        list.update(rows((2..7).rev()), None);
        assert_eq!((visible(&list), list.selected().unwrap().index), (vec![6, 5, 4], 6));
        list.select(Movement::Lines(1));
        list.update(rows((6..9).rev()), None);
        assert_eq!(list.selected().unwrap().index, 5);
        assert_eq!(list.extent(), (9, true));
    }

    #[test]
    fn a_list_with_a_possible_gap_begins_anew() {
        let mut list = list((0..3).rev());
        list.select(Movement::Lines(2));
        list.update(rows((10..13).rev()), None);
        assert_eq!((visible(&list), list.extent()), (vec![12, 11, 10], (3, false)));
    }

    #[test]
    fn older_entries_are_requested_once_when_the_end_is_near() {
        let mut list = list((10..20).rev());
        assert_eq!(list.wanted_older(), None);
        list.select(Movement::Lines(8));
        assert_eq!(list.wanted_older().as_deref(), Some("older"));
        assert_eq!(list.wanted_older(), None);
        list.append(rows((5..10).rev()), None);
        assert_eq!(list.extent(), (15, false));
    }

    #[test]
    fn an_empty_list_has_no_selection() {
        let mut list = EntryList::new(Vec::new(), None, 3);
        list.select(Movement::Lines(1));
        assert_eq!((list.selected(), list.visible().len()), (None, 0));
        list.update(rows(0..1), None);
        assert_eq!(list.selected().unwrap().index, 0);
    }
}
