//! Unified diffs, and the diffs of Pi.

use super::change::{DiffLine, Hunk};

/// Parses the hunks of a unified diff of one file. Lines outside of hunks are headers. `None` if there is no hunk, or
/// one is cut off.
pub(super) fn hunks(diff: &str) -> Option<Vec<Hunk>> {
    let mut hunks = Vec::new();
    let mut lines = diff.lines();
    while let Some(line) = lines.next() {
        if let Some(header) = Header::parse(line) {
            let (before, lines) = (Some(header.before), body(&header, &mut lines)?);
            hunks.push(Hunk { before, lines, ..Hunk::default() });
        }
    }
    (!hunks.is_empty()).then_some(hunks)
}

/// The header of a hunk: `@@ -OLD,COUNT +NEW,COUNT @@`.
struct Header {
    /// Number of lines before the hunk in the changed file.
    before: u64,
    old: u64,
    new: u64,
}

impl Header {
    fn parse(line: &str) -> Option<Header> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let ((_, old), (first, new)) = (range(old)?, range(new)?);
        // A range without lines names the line before it.
        let before = if new == 0 { first } else { first.checked_sub(1)? };
        Some(Header { before, old, new })
    }
}

/// Parses `FIRST,COUNT`. A count of 1 may be left out.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, count) = text.split_once(',').unwrap_or((text, "1"));
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    Some((number(first)?, number(count)?))
}

/// Takes as many lines as the header counts; `None` if there are fewer.
fn body<'d>(header: &Header, lines: &mut impl Iterator<Item = &'d str>) -> Option<Vec<DiffLine>> {
    let (mut old, mut new) = (header.old, header.new);
    let mut body = Vec::new();
    while old > 0 || new > 0 {
        let text = lines.next()?;
        if text.starts_with('\\') {
            continue;
        }
        let line = DiffLine::parse(text)?;
        if line.before().is_some() {
            old = old.checked_sub(1)?;
        }
        if line.after().is_some() {
            new = new.checked_sub(1)?;
        }
        body.push(line);
    }
    Some(body)
}

/// Parses a diff of Pi, in which the sign of a line is followed by its number and a blank: that in the changed file if it was
/// added, else that in the file before. `...` stands for lines that are left out. `None` if a line is in another form, or not
/// after the one before it.
pub(super) fn numbered_hunks(diff: &str) -> Option<Vec<Hunk>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Places in the changed file, as it is when the lines above are changed.
    let (mut grown, mut end) = (0, 0);
    for line in diff.lines().filter(|line| !is_gap(line)) {
        let (number, line) = numbered_line(line)?;
        let at = number - 1 + if line.before().is_some() { grown } else { 0 };
        if at < end {
            return None;
        }
        if at > end || hunks.is_empty() {
            hunks.push(Hunk { before: Some(u64::try_from(at).ok()?), ..Hunk::default() });
        }
        end = at + i64::from(line.after().is_some());
        grown += i64::from(line.after().is_some()) - i64::from(line.before().is_some());
        hunks.last_mut()?.lines.push(line);
    }
    (!hunks.is_empty()).then_some(hunks)
}

/// Returns whether a line of a diff of Pi stands for lines that are left out.
fn is_gap(line: &str) -> bool {
    line.trim_start() == "..."
}

/// Parses a line of a diff of Pi: its number and what becomes of it.
fn numbered_line(line: &str) -> Option<(i64, DiffLine)> {
    let (sign, rest) = line.split_at_checked(1)?;
    let (number, text) = rest.trim_start_matches(' ').split_once(' ')?;
    Some((number.parse::<u32>().ok()?.into(), DiffLine::parse(&format!("{sign}{text}"))?))
}
