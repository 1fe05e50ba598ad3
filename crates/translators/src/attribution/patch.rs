//! Patches in the format of the tool `apply_patch`: files by name, and hunks which are found by their
//! lines, after a line of context if one is stated.

use super::change::{Change, DiffLine, FileChange, Hunk};

/// The first line of a patch.
pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

/// Parses the first patch in a text, for example in a command of a shell. Empty if there is none.
pub(super) fn changes(text: &str) -> Vec<FileChange> {
    let Some((_, patch)) = text.split_once(BEGIN) else { return Vec::new() };
    let mut files: Vec<PatchedFile> = Vec::new();
    for line in patch.lines().skip(1).take_while(|line| line.trim_end() != END) {
        match PatchedFile::begun_by(line) {
            Some(file) => files.push(file),
            None => files.last_mut().into_iter().for_each(|file| file.add(line)),
        }
    }
    files.into_iter().flat_map(PatchedFile::into_changes).collect()
}

/// A file of a patch.
struct PatchedFile {
    path: String,
    kind: Kind,
    hunks: Vec<Hunk>,
    moved_to: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Add,
    Update,
    Delete,
}

impl PatchedFile {
    fn begun_by(line: &str) -> Option<PatchedFile> {
        let headers = [
            ("*** Add File: ", Kind::Add),
            ("*** Update File: ", Kind::Update),
            ("*** Delete File: ", Kind::Delete),
        ];
        headers.into_iter().find_map(|(start, kind)| {
            let path = line.strip_prefix(start)?.trim().to_owned();
            Some(PatchedFile { path, kind, hunks: Vec::new(), moved_to: None })
        })
    }

    fn add(&mut self, line: &str) {
        if let Some(path) = line.strip_prefix("*** Move to: ") {
            self.moved_to = Some(path.trim().to_owned());
        } else if let Some(context) = line.strip_prefix("@@") {
            let context = Some(context.strip_prefix(' ').unwrap_or(context).to_owned());
            let context = context.filter(|line| !line.trim().is_empty());
            self.hunks.push(Hunk { context, ..Hunk::default() });
        } else if line.trim_end() == END_OF_FILE {
            self.hunks.last_mut().into_iter().for_each(|hunk| hunk.is_last = true);
        } else if let Some(line) = DiffLine::parse(line) {
            if self.hunks.is_empty() {
                self.hunks.push(Hunk::default());
            }
            self.hunks.last_mut().into_iter().for_each(|hunk| hunk.lines.push(line.clone()));
        }
    }

    fn into_changes(self) -> Vec<FileChange> {
        let change = match self.kind {
            Kind::Add => Change::Content(added(&self.hunks)),
            Kind::Update => Change::Hunks(self.hunks),
            Kind::Delete => Change::Deleted,
        };
        let moved = self.moved_to.map(|to| FileChange::of(self.path.clone(), Change::MovedTo(Some(to))));
        std::iter::once(FileChange::of(self.path, change)).chain(moved).collect()
    }
}

fn added(hunks: &[Hunk]) -> String {
    let lines = hunks.iter().flat_map(|hunk| hunk.lines.iter().filter_map(DiffLine::after));
    lines.flat_map(|line| [line, "\n"]).collect()
}
