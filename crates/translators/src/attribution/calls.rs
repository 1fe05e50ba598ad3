//! Tool calls that change files, with what their input states.

use serde_json::Value;

use super::change::{Change, FileChange};
use super::patch;

/// Names of the member with the path of the file.
const PATH: [&str; 4] = ["file_path", "filePath", "path", "target_file"];
/// Names of the member with the whole content.
const CONTENT: [&str; 3] = ["content", "contents", "file_text"];
/// Names of the member with the text to replace.
const OLD: [&str; 3] = ["old_string", "oldString", "oldText"];
/// Names of the member with its replacement.
const NEW: [&str; 3] = ["new_string", "newString", "newText"];
/// Names of the member that says whether all occurrences are replaced.
const ALL: [&str; 2] = ["replace_all", "replaceAll"];
/// Names of the member with a patch.
const PATCH: [&str; 4] = ["input", "patch", "patchText", "patch_text"];
/// Names of the member with a command.
const COMMAND: [&str; 2] = ["command", "cmd"];
/// Names of the member with the folder of a command.
const FOLDER: [&str; 2] = ["workdir", "working_directory"];

/// Returns the changes of a call; empty if it changes no files that its input names.
pub(super) fn changes(tool: &str, input: &Value) -> Vec<FileChange> {
    match tool {
        "Write" | "write" | "write_file" | "create_file" => of_file(input, content(input)),
        "Edit" | "edit" | "replace" | "StrReplace" | "search_replace" | "MultiEdit" | "multiedit" => {
            edits(input)
        }
        "Delete" | "delete_file" => of_file(input, Some(Change::Deleted)),
        "edit_file" | "NotebookEdit" | "EditNotebook" | "notebook_edit" => of_file(input, None),
        "apply_patch" | "ApplyPatch" | "patch" => patch::changes(text(input, &PATCH).unwrap_or_default()),
        "shell" | "local_shell" | "shell_command" | "exec_command" => commands(input),
        _ => Vec::new(),
    }
}

/// The change of the file that an input names; [`Change::Unstated`] if the input is in no known form.
fn of_file(input: &Value, change: Option<Change>) -> Vec<FileChange> {
    let path = text(input, &PATH).or_else(|| input.get("notebook_path")?.as_str());
    let change = change.unwrap_or(Change::Unstated);
    path.map(|path| FileChange::of(path.to_owned(), change)).into_iter().collect()
}

fn content(input: &Value) -> Option<Change> {
    text(input, &CONTENT).map(|content| Change::Content(content.to_owned()))
}

/// The replacements of one call: a list of them, or the only one.
fn edits(input: &Value) -> Vec<FileChange> {
    match input.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().flat_map(|edit| of_file(input, replacement(edit))).collect(),
        None => of_file(input, replacement(input)),
    }
}

fn replacement(input: &Value) -> Option<Change> {
    let (old, new) = (text(input, &OLD)?.to_owned(), text(input, &NEW)?.to_owned());
    if old.is_empty() {
        return Some(Change::Content(new));
    }
    Some(Change::Replacement {
        old,
        new,
        all: ALL.iter().any(|name| input.get(*name) == Some(&Value::Bool(true))),
    })
}

/// The changes of the patch that one of the arguments of a command is or contains.
fn commands(input: &Value) -> Vec<FileChange> {
    let command = COMMAND.iter().find_map(|name| input.get(*name));
    let texts: Vec<&str> = match command {
        Some(Value::String(line)) => vec![line],
        Some(Value::Array(arguments)) => arguments.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let patches = texts.into_iter().filter(|text| text.contains("apply_patch") || text.starts_with("*** "));
    let mut found = patches.map(|text| (text, patch::changes(text)));
    let Some((command, changes)) = found.find(|(_, changes)| !changes.is_empty()) else { return Vec::new() };
    let entered = entered(command);
    let folder = FOLDER.iter().find_map(|name| input.get(*name)?.as_str()).unwrap_or_default();
    changes.into_iter().map(|change| change.in_folder(entered).in_folder(Some(folder))).collect()
}

/// Returns the folder of the `cd` that a command of a shell begins with; empty if it begins with none, and `None` if the shell
/// expands its name, or the command may change the folder again before its patch.
fn entered(command: &str) -> Option<&str> {
    let before = command.split(patch::BEGIN).next().unwrap_or_default().trim_start();
    let Some(rest) = before.strip_prefix("cd ") else { return (!may_change_folder(before)).then_some("") };
    let (argument, later) = rest.split_at(rest.find(['&', ';', '|', '\n']).unwrap_or(rest.len()));
    if may_change_folder(later) {
        return None;
    }
    let argument = argument.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| argument.strip_prefix(quote)?.strip_suffix(quote));
    let is_plain = |c: char| !"\"'$`\\*?[]{}()<>~!#".contains(c) && (quoted.is_some() || !c.is_whitespace());
    let folder = quoted.unwrap_or(argument);
    (!folder.is_empty() && !folder.starts_with('-') && folder.chars().all(is_plain)).then_some(folder)
}

/// Returns whether one of the words of these commands changes the folder.
fn may_change_folder(commands: &str) -> bool {
    let mut words = commands.split(|c: char| c.is_whitespace() || "&;|(){}\"'`".contains(c));
    words.any(|word| ["cd", "pushd", "popd"].contains(&word))
}

/// Returns the text of the first of these members that is one. A text stands for itself.
fn text<'v>(input: &'v Value, names: &[&str]) -> Option<&'v str> {
    input.as_str().or_else(|| names.iter().find_map(|name| input.get(*name)?.as_str()))
}
