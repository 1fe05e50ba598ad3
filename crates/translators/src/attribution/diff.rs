//! Unified diffs.

use super::change::{DiffLine, Hunk};

/// Parses the hunks of a unified diff of one file. Lines outside of hunks are headers. `None` if there is no hunk, or
/// one is cut off.
pub(super) fn hunks(diff: &str) -> Option<Vec<Hunk>> {
    let mut hunks = Vec::new();
    let mut lines = diff.lines();
    while let Some(line) = lines.next() {
        if let Some(header) = Header::parse(line) {
            hunks.push(Hunk { before: Some(header.before), lines: body(&header, &mut lines)? });
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
