//! The lines of one file with their contributors, through all changes of a session.
//!
//! The content of a file that the session did not write is not known: then changes move the lines by the numbers that
//! the diffs state. A change whose place is not known makes all places of the file unknown.

use std::ops::Range;

use super::change::{Change, DiffLine, Hunk};
use crate::limits::{ATTRIBUTED_TEXT, ATTRIBUTION_WORK};

/// The contributor of lines (`contributor` of the draft).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Contributor {
    /// `ai` or `mixed`.
    pub kind: &'static str,
    pub model: Option<String>,
}

/// The work that is left for the changes of a session, in bytes and lines that are searched or moved. Without a limit the
/// time for many changes of a long file would grow with the product.
pub(super) struct Work(usize);

impl Default for Work {
    fn default() -> Self {
        Work(ATTRIBUTION_WORK)
    }
}

impl Work {
    fn spend(&mut self, amount: usize) -> Option<()> {
        self.0 = self.0.checked_sub(amount)?;
        Some(())
    }
}

/// The attributed lines of a file.
#[derive(Debug, Default)]
pub(super) struct FileLines {
    /// The content, if it is known. Each line ends with a line break.
    text: Option<String>,
    /// Attributed lines, counted from 0, in order and without overlaps.
    spans: Vec<(Range<u64>, Contributor)>,
}

impl FileLines {
    /// The attributed lines, counted from 0.
    pub fn spans(&self) -> &[(Range<u64>, Contributor)] {
        &self.spans
    }

    /// Applies a change. Returns false if its lines are not known; then no line of the file is attributed any more.
    pub fn apply(&mut self, change: &Change, by: &Contributor, work: &mut Work) -> bool {
        let applied = match change {
            Change::Content(content) => self.replace_all(content, by, work),
            Change::Replacement { old, new, all } => self.replace(old, new, *all, by, work),
            Change::Hunks(hunks) => self.patch(hunks, by, work),
            Change::Result(content) => {
                self.text = known(content);
                Some(())
            }
            Change::Deleted => {
                *self = FileLines::default();
                Some(())
            }
            Change::MovedTo(_) => Some(()),
            Change::Unstated => None,
        };
        if applied.is_none() {
            *self = FileLines::default();
        }
        applied.is_some()
    }

    fn replace_all(&mut self, content: &str, by: &Contributor, work: &mut Work) -> Option<()> {
        work.spend(content.len())?;
        let count = content.lines().count() as u64;
        self.spans = if count > 0 { vec![(0..count, by.clone())] } else { Vec::new() };
        self.text = known(content);
        Some(())
    }

    /// Replaces a text in the known content, and attributes the lines that differ.
    fn replace(&mut self, old: &str, new: &str, all: bool, by: &Contributor, work: &mut Work) -> Option<()> {
        let text = self.text.take()?;
        work.spend(text.len())?;
        let (mut changed, mut line, mut rest) = (String::new(), 0, text.as_str());
        let mut found = false;
        while let Some(at) = rest.find(old).filter(|_| all || !found) {
            found = true;
            let (before, after) = (&rest[..at], &rest[at + old.len()..]);
            changed.push_str(before);
            line += line_breaks(before);
            let start = changed.rfind('\n').map_or(0, |at| at + 1);
            let end = after.find('\n').map_or(after.len(), |at| at + 1);
            let block = |text: &str| [&changed[start..], text, &after[..end]].concat();
            work.spend(changed.len() - start + end)?;
            self.replace_lines(line, &block(old), &block(new), by, work)?;
            changed.push_str(new);
            line += line_breaks(new);
            rest = after;
        }
        changed.push_str(rest);
        self.text = known(&changed);
        found.then_some(())
    }

    /// Attributes the lines of a block that differ from those before.
    fn replace_lines(
        &mut self,
        at: u64,
        old: &str,
        new: &str,
        by: &Contributor,
        work: &mut Work,
    ) -> Option<()> {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[same..], &new[same..]);
        let same_at_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let (removed, added) = (old.len() - same_at_end, new.len() - same_at_end);
        self.splice(at + same as u64, removed as u64, added as u64, by, work)
    }

    fn patch(&mut self, hunks: &[Hunk], by: &Contributor, work: &mut Work) -> Option<()> {
        let hunks = self.located(hunks, work)?;
        for hunk in &hunks {
            let mut at = hunk.before?;
            for group in hunk.lines.chunk_by(|a, b| is_kept(a) == is_kept(b)) {
                let count =
                    |side: fn(&DiffLine) -> Option<&str>| group.iter().filter_map(side).count() as u64;
                let (old, new) = (count(DiffLine::before), count(DiffLine::after));
                if !is_kept(&group[0]) {
                    self.splice(at, old, new, by, work)?;
                }
                at += new;
            }
        }
        self.text = self.text.take().and_then(|text| patched(&text, &hunks));
        Some(())
    }

    /// Returns the hunks with their places. Those that state none are searched in the known content, in their order.
    fn located(&self, hunks: &[Hunk], work: &mut Work) -> Option<Vec<Hunk>> {
        if hunks.iter().all(|hunk| hunk.before.is_some()) {
            return Some(hunks.to_vec());
        }
        let lines: Vec<&str> = self.text.as_ref()?.lines().collect();
        let mut from = 0;
        let mut places = Vec::new();
        for hunk in hunks {
            let count = hunk.lines.iter().filter_map(DiffLine::before).count();
            work.spend(lines.len().saturating_mul(count.max(1)))?;
            let at = place(hunk, &lines, &mut from)?;
            places.push((at, count, hunk));
        }
        // What only adds lines is at the end of the file, whatever follows it in the patch.
        places.sort_by_key(|(at, ..)| *at);
        let mut shift = 0i64;
        let located = places.into_iter().map(|(at, old, hunk)| {
            let before = u64::try_from(at as i64 + shift).ok();
            shift += hunk.lines.iter().filter_map(DiffLine::after).count() as i64 - old as i64;
            Hunk { before, ..hunk.clone() }
        });
        Some(located.collect())
    }

    /// Replaces lines: `removed` lines from `at` on make room for `added` ones, and all later lines move.
    fn splice(&mut self, at: u64, removed: u64, added: u64, by: &Contributor, work: &mut Work) -> Option<()> {
        work.spend(self.spans.len() + 1)?;
        let end = at + removed;
        let moved = |line: u64| line - removed + added;
        let mut spans: Vec<(Range<u64>, Contributor)> = Vec::with_capacity(self.spans.len() + 2);
        let mut later = Vec::new();
        for (span, contributor) in self.spans.drain(..) {
            if span.start < at {
                spans.push((span.start..span.end.min(at), contributor.clone()));
            }
            if span.end > end {
                later.push((moved(span.start.max(end))..moved(span.end), contributor));
            }
        }
        if added > 0 {
            spans.push((at..at + added, by.clone()));
        }
        spans.extend(later);
        self.spans = joined(spans);
        Some(())
    }
}

/// Returns the place of a hunk that states none, searched in the lines from `from` on, and moves `from` behind it. What only adds
/// lines is at the end of the file. `None` if its lines are not there, or its context is not, and its lines are there more than once.
fn place(hunk: &Hunk, lines: &[&str], from: &mut usize) -> Option<usize> {
    let old: Vec<&str> = hunk.lines.iter().filter_map(DiffLine::before).collect();
    if let Some(context) = &hunk.context {
        let rest = lines.get(*from..)?;
        let found = rest.iter().position(|line| line == context);
        let found = found.or_else(|| rest.iter().position(|line| line.trim() == context.trim()));
        match found {
            Some(at) => *from += at + 1,
            None if is_once_in(rest, &old) => {}
            None => return None,
        }
    }
    if old.is_empty() {
        return Some(lines.len());
    }
    let first = if hunk.is_last { lines.len().checked_sub(old.len())?.max(*from) } else { *from };
    let at = first + lines.get(first..)?.windows(old.len()).position(|window| window == old)?;
    *from = at + old.len();
    Some(at)
}

/// Returns whether these lines, at least one, are at exactly one place among others.
fn is_once_in(lines: &[&str], wanted: &[&str]) -> bool {
    !wanted.is_empty() && lines.windows(wanted.len()).filter(|window| *window == wanted).count() == 1
}

fn is_kept(line: &DiffLine) -> bool {
    matches!(line, DiffLine::Kept(_))
}

fn line_breaks(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Returns a content to remember, with a line break at its end; `None` if it is too long.
fn known(content: &str) -> Option<String> {
    let missing = !content.is_empty() && !content.ends_with('\n');
    (content.len() <= ATTRIBUTED_TEXT).then(|| [content, if missing { "\n" } else { "" }].concat())
}

/// Joins neighbouring spans of the same contributor.
fn joined(spans: Vec<(Range<u64>, Contributor)>) -> Vec<(Range<u64>, Contributor)> {
    let mut joined: Vec<(Range<u64>, Contributor)> = Vec::with_capacity(spans.len());
    for (span, contributor) in spans {
        match joined.last_mut() {
            Some((last, by)) if last.end == span.start && *by == contributor => last.end = span.end,
            _ => joined.push((span, contributor)),
        }
    }
    joined
}

/// Applies located hunks to a content; `None` if its lines are not those of the hunks.
fn patched(text: &str, hunks: &[Hunk]) -> Option<String> {
    let mut old = text.lines();
    let mut new: Vec<&str> = Vec::new();
    for hunk in hunks {
        let before = usize::try_from(hunk.before?).ok()?.checked_sub(new.len())?;
        new.extend(old.by_ref().take(before));
        for line in &hunk.lines {
            if let Some(expected) = line.before() {
                old.next().filter(|line| *line == expected)?;
            }
            new.extend(line.after());
        }
    }
    new.extend(old);
    known(&new.into_iter().flat_map(|line| [line, "\n"]).collect::<String>())
}
