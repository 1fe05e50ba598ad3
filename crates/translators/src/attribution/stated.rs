//! Changes as the results of tool calls state them, with the numbers of lines.
//!
//! | format | place in the record |
//! |---|---|
//! | Claude Code | `native.toolUseResult.structuredPatch` of the result |
//! | Gemini CLI | `native.resultDisplay.fileDiff` of the call |
//! | Qwen Code | `native.toolCallResult.resultDisplay.fileDiff` of the result |
//! | Pi | `native.message.details.diff` of the result |
//! | OpenCode | `native.state.metadata.diff` of the call, or of each of its `files` |
//! | Codex CLI | `changes` of the event `patch_apply_end`, or of the item `FileChange` of the event `item_completed` |

use serde_json::Value;

use super::change::{Change, DiffLine, FileChange, Hunk};
use super::diff;
use crate::entry::{Entry, SYSTEM_EVENT};

/// The event with which Codex reports a patch, in older versions.
const PATCH_EVENT: &str = "patch_apply_end";
/// The event with which Codex reports that something is done, among that a patch.
const ITEM_EVENT: &str = "item_completed";

/// A patch that an event reports.
pub(super) struct Report<'e> {
    /// The call that made it.
    pub call: Option<&'e str>,
    pub changes: &'e Value,
    pub has_failed: bool,
}

/// Returns the patch that an entry reports.
pub(super) fn report(entry: &Entry) -> Option<Report<'_>> {
    let data = entry.member("data").filter(|_| entry.kind() == SYSTEM_EVENT)?;
    let (patch, call, has_failed) = match entry.text("event-type")? {
        PATCH_EVENT => (data, "call_id", data.get("success") == Some(&Value::Bool(false))),
        ITEM_EVENT => {
            let item =
                data.get("item").filter(|item| item.get("type").is_some_and(|kind| kind == "FileChange"))?;
            (item, "id", item.get("status").is_some_and(|status| status != "completed"))
        }
        _ => return None,
    };
    let call = patch.get(call).and_then(Value::as_str);
    Some(Report { call, changes: patch.get("changes").unwrap_or(&Value::Null), has_failed })
}

/// Returns what was changed: as the result states it, else as the call does.
pub(super) fn changes(call: &Entry, result: Option<&Entry>, named: Vec<FileChange>) -> Vec<FileChange> {
    let metadata = call.native_value("state").and_then(|state| state.get("metadata"));
    if let Some(files) = metadata.and_then(|metadata| metadata.get("files")?.as_array()) {
        let stated: Option<Vec<_>> = files.iter().map(patched_file).collect();
        return stated.map_or(named, |stated| stated.concat());
    }
    let Some(first) = named.first() else { return named };
    let hunks = (result.and_then(|result| structured_patch(result.native_value("toolUseResult")?)))
        .or_else(|| displayed_patch(display(call, result)?))
        .or_else(|| diff::hunks(metadata?.get("diff")?.as_str()?))
        .or_else(|| {
            diff::numbered_hunks(result?.native_value("message")?.pointer("/details/diff")?.as_str()?)
        });
    let Some(hunks) = hunks else { return named };
    let change = |change| FileChange { path: first.path.clone(), change };
    let written = match &first.change {
        Change::Content(content) => Some(change(Change::Result(content.clone()))),
        _ => None,
    };
    std::iter::once(change(Change::Hunks(hunks))).chain(written).collect()
}

/// Returns whether the user changed the text before it was written.
pub(super) fn is_modified_by_user(call: &Entry, result: Option<&Entry>) -> bool {
    let modified = result.and_then(|result| result.native_value("toolUseResult")?.get("userModified"));
    let lines = display(call, result).and_then(|display| display.get("diffStat"));
    let has_lines = |name: &str| lines.and_then(|lines| lines.get(name)?.as_u64()).unwrap_or(0) > 0;
    modified == Some(&Value::Bool(true)) || has_lines("user_added_lines") || has_lines("user_removed_lines")
}

/// Returns what Gemini CLI and Qwen Code show of a result. A line of Qwen Code with several results describes one of them.
fn display<'e>(call: &'e Entry, result: Option<&'e Entry>) -> Option<&'e Value> {
    let is_of_call = |described: &&Value| described.get("callId") == call.member("call-id");
    let of_result = || result?.native_value("toolCallResult").filter(is_of_call)?.get("resultDisplay");
    call.native_value("resultDisplay").or_else(of_result)
}

/// Returns the hunks of a displayed diff; none of them if the file had this content before.
fn displayed_patch(display: &Value) -> Option<Vec<Hunk>> {
    let text = |name: &str| display.get(name).and_then(Value::as_str);
    let is_unchanged = text("originalContent").is_some_and(|before| text("newContent") == Some(before));
    diff::hunks(text("fileDiff")?).or_else(|| is_unchanged.then(Vec::new))
}

/// Returns the hunks of a structured patch; none of them if the file had this content before.
fn structured_patch(result: &Value) -> Option<Vec<Hunk>> {
    let hunks: Option<Vec<Hunk>> =
        result.get("structuredPatch")?.as_array()?.iter().map(structured_hunk).collect();
    hunks.filter(|hunks| !hunks.is_empty() || is_unchanged(result))
}

/// Returns whether a file that was there was written without a change, as far as the result states both contents.
fn is_unchanged(result: &Value) -> bool {
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let differs = text("originalFile").zip(text("content")).is_some_and(|(before, after)| before != after);
    text("type") == Some("update") && !differs
}

fn structured_hunk(hunk: &Value) -> Option<Hunk> {
    // Unlike in a unified diff, a hunk without new lines starts at the line after them.
    let first = u32::try_from(hunk.get("newStart")?.as_u64()?).ok()?;
    let before = u64::from(first.checked_sub(1)?);
    let lines = hunk.get("lines")?.as_array()?.iter().map(|line| line.as_str());
    let lines = lines.filter(|line| !line.is_some_and(|line| line.starts_with('\\')));
    Some(Hunk {
        before: Some(before),
        lines: lines.map(|line| DiffLine::parse(line?)).collect::<Option<_>>()?,
        ..Hunk::default()
    })
}

/// A file of OpenCode's tool `apply_patch`.
fn patched_file(file: &Value) -> Option<Vec<FileChange>> {
    let text = |name: &str| file.get(name).and_then(Value::as_str);
    let change = match text("type") {
        Some("delete") => Change::Deleted,
        Some("add") => Change::Content(text("after")?.to_owned()),
        _ => Change::Hunks(diff::hunks(text("diff")?)?),
    };
    Some(with_move(text("filePath")?, change, text("movePath")))
}

/// The files of a report. The change of a file is `{type, …}`, or in older versions `{TYPE: {…}}`.
pub(super) fn reported(changes: &Value) -> Vec<FileChange> {
    let files = changes.as_object().into_iter().flatten();
    files
        .flat_map(|(path, change)| {
            let older = || change.as_object()?.iter().next().map(|(kind, change)| (kind.as_str(), change));
            let kind = change.get("type").and_then(Value::as_str).map(|kind| (kind, change));
            let Some((kind, change)) = kind.or_else(older) else {
                return with_move(path, Change::Unstated, None);
            };
            let text = |name: &str| change.get(name).and_then(Value::as_str);
            let stated = match kind {
                "delete" => Some(Change::Deleted),
                "add" => text("content").map(|content| Change::Content(content.to_owned())),
                _ => text("unified_diff").and_then(diff::hunks).map(Change::Hunks),
            };
            with_move(path, stated.unwrap_or(Change::Unstated), text("move_path"))
        })
        .collect()
}

fn with_move(path: &str, change: Change, to: Option<&str>) -> Vec<FileChange> {
    let of_path = |change| FileChange::of(path.to_owned(), change);
    let moved = to.map(|to| of_path(Change::MovedTo(Some(to.to_owned()))));
    std::iter::once(of_path(change)).chain(moved).collect()
}
