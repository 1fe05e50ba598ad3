//! File attribution (section 3.9 of the draft): which lines the session's agent wrote, derived from the tool calls that
//! change files.
//!
//! The lines are those of the files at the end of the session, as far as the session states its own changes: a change
//! that someone else makes in between is not in a session file. A change counts if its call has a result that is not an
//! error; calls of formats without identifiers have no result that can be assigned, and count too. Each change is in the
//! account: attributed, or the reason why not.
//!
//! Not here: what a line says. `content-hash` would let a reader of a redacted record test guesses of its lines.

mod calls;
mod change;
mod diff;
mod lines;
mod patch;
mod paths;
mod stated;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{Entry, TOOL_CALL, TOOL_RESULT};
use crate::session::Session;
use change::{Change, FileChange};
use lines::{Contributor, FileLines, Work};
use paths::Folders;
use stated::Report;

/// The beginning of an output with which a patch failed, in versions that state no exit code.
const FAILED_PATCH: &str = "apply_patch verification failed";
/// The name of changes in the account.
const FILE_CHANGE: &str = "file-change";

/// Derives the `file-attribution` of a session; `None` if no line is attributed. Paths become relative to `root`, else to
/// the working folder of the session.
pub(crate) fn attribute(
    session: &Session,
    root: Option<&str>,
    account: &mut TranslationAccount,
) -> Option<Value> {
    let mut reader = ChangeReader {
        folders: Folders::of(session, root),
        results: HashMap::new(),
        reported: HashSet::new(),
        read_reports: HashSet::new(),
        model: None,
        files: BTreeMap::new(),
        work: Work::default(),
        account,
    };
    session.entries.iter().for_each(|entry| reader.collect(entry));
    session.entries.iter().for_each(|entry| reader.read(entry));
    into_value(&reader.files)
}

/// Reader of the changes of a session, in the order of its entries.
struct ChangeReader<'s> {
    folders: Folders,
    /// Results by call.
    results: HashMap<&'s str, &'s Entry>,
    /// Calls whose changes an event reports.
    reported: HashSet<&'s str>,
    /// Calls whose report was read. A session may report the same patch with an event of each kind.
    read_reports: HashSet<&'s str>,
    /// The last model that an entry names.
    model: Option<&'s str>,
    files: BTreeMap<String, FileLines>,
    work: Work,
    account: &'s mut TranslationAccount,
}

impl<'s> ChangeReader<'s> {
    /// Collects results and reports, which follow their calls.
    fn collect(&mut self, entry: &'s Entry) {
        if let (TOOL_RESULT, Some(call)) = (entry.kind(), entry.text("call-id")) {
            self.results.insert(call, entry);
        }
        let reported = stated::report(entry).and_then(|report| report.call);
        self.reported.extend(reported);
        entry.child_entries().iter().for_each(|child| self.collect(child));
    }

    fn read(&mut self, entry: &'s Entry) {
        let turn = entry.member("data").filter(|_| entry.text("event-type") == Some("turn_context"));
        let model = entry.text("model-id").or_else(|| turn?.get("model")?.as_str());
        self.model = model.or(self.model);
        if let Some(folder) = turn.and_then(|turn| turn.get("cwd")?.as_str()) {
            self.folders.enter(folder);
        }
        if entry.kind() == TOOL_CALL {
            self.read_call(entry);
        } else if let Some(report) = stated::report(entry) {
            self.read_report(&report);
        }
        entry.child_entries().iter().for_each(|child| self.read(child));
    }

    fn read_call(&mut self, call: &'s Entry) {
        let input = call.member("input").unwrap_or(&Value::Null);
        let named = calls::changes(call.text("name").unwrap_or_default(), input);
        let id = call.text("call-id");
        if named.is_empty() || id.is_some_and(|id| self.reported.contains(id)) {
            return;
        }
        let result = id.and_then(|id| self.results.get(id).copied());
        let reason = match (id, result) {
            (Some(_), None) => Some("the call has no result"),
            (_, Some(result)) if is_failure(result) => Some("the call failed"),
            _ => None,
        };
        if let Some(reason) = reason {
            named.iter().for_each(|_| self.count(NativeOutcome::Skipped(reason)));
            return;
        }
        let kind = if stated::is_modified_by_user(call, result) { "mixed" } else { "ai" };
        self.apply(stated::changes(call, result, named), kind);
    }

    fn read_report(&mut self, report: &Report<'s>) {
        if report.call.is_some_and(|call| !self.read_reports.insert(call)) {
            return;
        }
        let changes = stated::reported(report.changes);
        match report.has_failed {
            true => changes.iter().for_each(|_| self.count(NativeOutcome::Skipped("the call failed"))),
            false => self.apply(changes, "ai"),
        }
    }

    fn apply(&mut self, changes: Vec<FileChange>, kind: &'static str) {
        let by = Contributor { kind, model: self.model.map(str::to_owned) };
        for FileChange { path, change } in changes {
            let Some(path) = path else {
                self.count(NativeOutcome::Skipped("the folder of the command is not known"));
                continue;
            };
            let Some(path) = self.folders.relative(&path) else {
                self.count(NativeOutcome::Skipped("the file is outside of the known folder"));
                continue;
            };
            let file = self.files.entry(path.clone()).or_default();
            let applied = file.apply(&change, &by, &mut self.work);
            match change {
                Change::Result(_) => {}
                Change::MovedTo(to) => self.rename(&path, to.as_deref()),
                _ if applied => self.count(NativeOutcome::Kept("file-attribution")),
                _ => self.count(NativeOutcome::Skipped("the session does not state its lines")),
            }
        }
    }

    /// Renames a file. Its lines are dropped if the new name is not known.
    fn rename(&mut self, from: &str, to: Option<&str>) {
        let to = to.and_then(|to| self.folders.relative(to));
        if let (Some(lines), Some(to)) = (self.files.remove(from), to) {
            self.files.insert(to, lines);
        }
    }

    fn count(&mut self, outcome: NativeOutcome) {
        self.account.part(FILE_CHANGE, outcome);
    }
}

fn is_failure(result: &Entry) -> bool {
    let failed = result.member("is-error").and_then(Value::as_bool);
    failed.unwrap_or_else(|| result.text("output").is_some_and(|output| output.starts_with(FAILED_PATCH)))
}

/// Serializes the attribution: for each file one conversation for each contributor.
fn into_value(files: &BTreeMap<String, FileLines>) -> Option<Value> {
    let attributed = files.iter().filter(|(_, lines)| !lines.spans().is_empty());
    let files: Vec<Value> = attributed
        .map(|(path, lines)| {
            let mut ranges: BTreeMap<&Contributor, Vec<Value>> = BTreeMap::new();
            for (span, by) in lines.spans() {
                let range = json!({ "start-line": span.start + 1, "end-line": span.end });
                ranges.entry(by).or_default().push(range);
            }
            let conversations: Vec<Value> = ranges
                .into_iter()
                .map(|(by, ranges)| json!({ "contributor": contributor(by), "ranges": ranges }))
                .collect();
            json!({ "path": path, "conversations": conversations })
        })
        .collect();
    (!files.is_empty()).then(|| json!({ "files": files }))
}

fn contributor(by: &Contributor) -> Value {
    match &by.model {
        Some(model) => json!({ "type": by.kind, "model-id": model }),
        None => json!({ "type": by.kind }),
    }
}
