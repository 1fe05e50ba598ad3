//! File attribution from the tool calls of each format.

use serde_json::{Value, json};
use translators::{SessionSource, Settings, translate};

/// The attributed ranges of a file: contributor, model, first and last line.
fn ranges(record: &Value, path: &str) -> Vec<(String, Option<String>, u64, u64)> {
    let files = record["file-attribution"]["files"].as_array().cloned().unwrap_or_default();
    let file = files.into_iter().find(|file| file["path"] == path).unwrap_or_default();
    let conversations = file["conversations"].as_array().cloned().unwrap_or_default();
    conversations
        .iter()
        .flat_map(|conversation| {
            let by = &conversation["contributor"];
            let text = |name: &str| by[name].as_str().map(str::to_owned);
            let ranges = conversation["ranges"].as_array().unwrap().iter();
            ranges.map(move |range| {
                let line = |name: &str| range[name].as_u64().unwrap();
                (text("type").unwrap(), text("model-id"), line("start-line"), line("end-line"))
            })
        })
        .collect()
}

/// The lines of a file that are attributed to the model `m`.
fn by_model(record: &Value, path: &str) -> Vec<(u64, u64)> {
    ranges(record, path)
        .into_iter()
        .map(|(kind, model, first, last)| {
            assert_eq!((kind.as_str(), model.as_deref()), ("ai", Some("m")));
            (first, last)
        })
        .collect()
}

fn settings(root: Option<&str>) -> Settings {
    Settings { root: root.map(str::to_owned), ..Settings::default() }
}

fn record(name: &str, lines: &[Value], root: Option<&str>) -> Value {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let translation = translate(&SessionSource::file(name, text), &settings(root)).unwrap();
    translation.records[0].0.value()
}

/// A call of Claude Code and the line with its result.
fn claude(id: &str, tool: &str, input: Value, result: Value) -> [Value; 2] {
    let line = |kind: &str, block: Value| {
        json!({
            "type": kind, "sessionId": "s", "uuid": format!("{kind}-{id}"), "cwd": "/srv/shop",
            "message": { "role": kind, "model": "m", "content": [block] },
        })
    };
    let call = line("assistant", json!({ "type": "tool_use", "id": id, "name": tool, "input": input }));
    let mut answer = line("user", json!({ "type": "tool_result", "tool_use_id": id, "content": "done" }));
    answer["toolUseResult"] = result;
    [call, answer]
}

fn claude_record(calls: &[[Value; 2]]) -> Value {
    record("s.jsonl", &calls.concat(), None)
}

pub fn written(id: &str, content: &str) -> [Value; 2] {
    let input = json!({ "file_path": "/srv/shop/src/a.rs", "content": content });
    claude(id, "Write", input, json!({ "type": "create" }))
}

fn replaced(id: &str, old: &str, new: &str) -> [Value; 2] {
    let input = json!({ "file_path": "/srv/shop/src/a.rs", "old_string": old, "new_string": new });
    claude(id, "Edit", input, json!({}))
}

#[test]
fn a_written_file_is_the_agents() {
    let record = claude_record(&[written("c1", "one\ntwo\n")]);
    assert_eq!(by_model(&record, "src/a.rs"), [(1, 2)]);
}

#[test]
fn hunks_of_a_result_name_the_lines_of_a_file_that_the_session_did_not_write() {
    let patch = json!([
        { "oldStart": 3, "oldLines": 3, "newStart": 3, "newLines": 4, "lines": [" a", "-b", "+B", "+C", " d"] },
        { "oldStart": 20, "oldLines": 1, "newStart": 21, "newLines": 2, "lines": [" x", "+y", "\\ No newline"] },
    ]);
    let input = json!({ "file_path": "/srv/shop/b.rs", "old_string": "b", "new_string": "B\nC" });
    let edited = claude("c1", "Edit", input.clone(), json!({ "structuredPatch": patch }));
    assert_eq!(by_model(&claude_record(std::slice::from_ref(&edited)), "b.rs"), [(4, 5), (22, 22)]);
    let above = json!([{ "oldStart": 1, "newStart": 1, "newLines": 2, "lines": ["+first", "+second"] }]);
    let second = claude("c2", "Edit", input.clone(), json!({ "structuredPatch": above }));
    let record = claude_record(&[edited.clone(), second]);
    assert_eq!(by_model(&record, "b.rs"), [(1, 2), (6, 7), (24, 24)], "later lines move");
    let cut = json!([{ "oldStart": 4, "newStart": 4, "newLines": 0, "lines": ["-B", "-C"] }]);
    let record = claude_record(&[edited, claude("c2", "Edit", input, json!({ "structuredPatch": cut }))]);
    assert_eq!(by_model(&record, "b.rs"), [(20, 20)], "removed lines are nobody's");
}

#[test]
fn a_file_that_is_written_with_the_content_that_it_had_stays_whose_it_was() {
    let input = json!({ "file_path": "/srv/shop/src/a.rs", "content": "one\ntwo\n" });
    let unchanged = claude("c1", "Write", input, json!({ "type": "update", "structuredPatch": [] }));
    assert!(claude_record(std::slice::from_ref(&unchanged)).get("file-attribution").is_none());
    let edited = claude_record(&[unchanged.clone(), replaced("c2", "two", "2")]);
    assert_eq!(by_model(&edited, "src/a.rs"), [(2, 2)], "its content is known");
    let mut without_diff = unchanged;
    without_diff[1]["toolUseResult"]["content"] = json!("one\ntwo\n");
    for (before, expected) in [("one\ntwo\n", &[][..]), ("two\n", &[(1, 2)])] {
        without_diff[1]["toolUseResult"]["originalFile"] = json!(before);
        let rewritten = claude_record(std::slice::from_ref(&without_diff));
        assert_eq!(by_model(&rewritten, "src/a.rs"), expected, "{before:?}");
    }
    for (before, expected) in [("one\n", &[][..]), ("", &[(1, 1)])] {
        let display =
            json!({ "fileDiff": "Index: a.rs\n===\n", "originalContent": before, "newContent": "one\n" });
        let call = json!({
            "id": "c", "name": "write_file", "args": { "file_path": "a.rs", "content": "one\n" }, "status": "success",
            "result": [{}], "resultDisplay": display,
        });
        let message =
            json!({ "type": "gemini", "id": "1", "model": "m", "content": "", "toolCalls": [call] });
        let session = json!({ "sessionId": "s", "projectHash": "p", "messages": [message] });
        assert_eq!(by_model(&record("s.json", &[session], None), "a.rs"), expected, "{before:?}");
    }
}

#[test]
fn replacements_in_a_known_file_attribute_the_lines_that_differ() {
    let record = claude_record(&[written("c1", "a\nb\nc\n"), replaced("c2", "a\nb\nc", "a\nb\nb2\nc")]);
    assert_eq!(by_model(&record, "src/a.rs"), [(1, 4)]);
    let mut second = replaced("c2", "b\n", "x\ny\n");
    second[0]["message"]["model"] = json!("n");
    let record = claude_record(&[written("c1", "a\nb\nc\n"), second]);
    let owners: Vec<_> = ranges(&record, "src/a.rs")
        .into_iter()
        .map(|(_, model, first, last)| (model.unwrap(), first, last))
        .collect();
    assert_eq!(owners, [("m".to_owned(), 1, 1), ("m".to_owned(), 4, 4), ("n".to_owned(), 2, 3)]);
}

#[test]
fn text_that_the_user_changed_is_of_both() {
    let mut call = written("c1", "a\n");
    call[1]["toolUseResult"]["userModified"] = json!(true);
    assert_eq!(
        ranges(&claude_record(&[call]), "src/a.rs"),
        [("mixed".to_owned(), Some("m".to_owned()), 1, 1)]
    );
}

#[test]
fn changes_that_failed_or_cannot_be_placed_are_in_the_account_and_not_in_the_record() {
    let mut failed = written("c1", "a\n");
    failed[1]["message"]["content"][0]["is_error"] = json!(true);
    let outside = claude("c2", "Write", json!({ "file_path": "/etc/motd", "content": "x" }), json!({}));
    let [unanswered, _] = written("c3", "a\n");
    let lines =
        [failed.to_vec(), outside.to_vec(), vec![unanswered], replaced("c4", "p", "q").to_vec()].concat();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let translation = translate(&SessionSource::file("s.jsonl", text), &Settings::default()).unwrap();
    assert!(translation.records[0].0.value().get("file-attribution").is_none());
    let account = serde_json::to_value(&translation.account).unwrap();
    assert_eq!(
        account["parts"]["file-change"],
        json!({
            "skipped: the call failed": 1,
            "skipped: the call has no result": 1,
            "skipped: the file is outside of the known folder": 1,
            "skipped: the session does not state its lines": 1,
        })
    );
}

#[test]
fn a_change_without_a_place_makes_the_places_of_its_file_unknown() {
    let sketch = claude("c2", "edit_file", json!({ "target_file": "src/a.rs" }), json!({}));
    let record = claude_record(&[written("c1", "a\n"), sketch]);
    assert!(record.get("file-attribution").is_none());
}

fn codex(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2026-03-01T10:00:00Z", "type": kind, "payload": payload })
}

fn codex_call(id: &str, patch: &str) -> [Value; 2] {
    let call = json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": id, "input": patch });
    let output = "{\"output\":\"Success.\",\"metadata\":{\"exit_code\":0}}";
    let result = json!({ "type": "custom_tool_call_output", "call_id": id, "output": output });
    [codex("response_item", call), codex("response_item", result)]
}

fn codex_record(items: &[Value]) -> Value {
    let head = [
        codex("session_meta", json!({ "id": "s", "cwd": "/srv/shop" })),
        codex("turn_context", json!({ "model": "m" })),
    ];
    record("s.jsonl", &[&head, items].concat(), None)
}

#[test]
fn codex_patches_are_placed_by_their_lines_or_by_the_report() {
    let added = codex_call("c1", "*** Begin Patch\n*** Add File: a.py\n+one\n+two\n+three\n*** End Patch");
    let update = "*** Begin Patch\n*** Update File: a.py\n@@\n one\n-two\n+TWO\n+2\n three\n*** End Patch\n";
    let updated = codex_call("c2", update);
    assert_eq!(by_model(&codex_record(&[added.clone(), updated.clone()].concat()), "a.py"), [(1, 4)]);
    assert!(codex_record(&updated).get("file-attribution").is_none(), "the file is not known");
    let report = codex(
        "event_msg",
        json!({ "type": "patch_apply_end", "call_id": "c2", "success": true, "changes": {
            "/srv/shop/a.py": {
                "type": "update", "unified_diff": "@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+2\n three\n", "move_path": "/srv/shop/b.py",
            },
            "/srv/shop/c.py": { "add": { "content": "x\n" } },
        } }),
    );
    let record = codex_record(&[updated.to_vec(), vec![report]].concat());
    assert_eq!((by_model(&record, "b.py"), by_model(&record, "c.py")), (vec![(2, 3)], vec![(1, 1)]));
    let changes =
        json!({ "/srv/shop/e.py": { "type": "update", "unified_diff": "@@ -1 +1,2 @@\n one\n+two\n" } });
    let older = json!({ "type": "patch_apply_end", "call_id": "c4", "success": true, "changes": changes });
    let item = json!({ "type": "FileChange", "id": "c4", "status": "completed", "changes": changes });
    let newer = json!({ "type": "item_completed", "item": item });
    let record = codex_record(&[codex("event_msg", older), codex("event_msg", newer)]);
    assert_eq!(by_model(&record, "e.py"), [(2, 2)], "a patch that is reported twice was made once");
    let command = json!({ "command": ["bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: d.py\n+x\n*** End Patch\nEOF"] });
    let record = codex_record(&codex_command("c3", &command));
    assert_eq!(by_model(&record, "d.py"), [(1, 1)]);
}

fn codex_command(id: &str, input: &Value) -> [Value; 2] {
    let call =
        json!({ "type": "function_call", "name": "shell", "call_id": id, "arguments": input.to_string() });
    let result = json!({ "type": "function_call_output", "call_id": id, "output": "Exit code: 0\nSuccess." });
    [codex("response_item", call), codex("response_item", result)]
}

/// The paths of the attributed files.
fn paths(record: &Value) -> Vec<&str> {
    let files = record["file-attribution"]["files"].as_array();
    files.into_iter().flatten().map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn a_patch_that_codex_makes_in_another_folder_is_of_the_files_there() {
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch\nEOF";
    let with_cd = |argument: &str| format!("cd {argument} && {patch}");
    for (command, folder, expected) in [
        (patch.to_owned(), "/srv/shop", &["a.py"][..]),
        (patch.to_owned(), "/srv/shop/sub", &["sub/a.py"]),
        (patch.to_owned(), "sub", &["sub/a.py"]),
        (patch.to_owned(), "/srv/other", &[]),
        (with_cd("sub"), "", &["sub/a.py"]),
        (with_cd("'my sub'"), "", &["my sub/a.py"]),
        (with_cd("/srv/shop/sub"), "/srv", &["sub/a.py"]),
        (with_cd("inner"), "/srv/shop/sub", &["sub/inner/a.py"]),
        (with_cd("$HOME"), "/srv/shop/sub", &[]),
        (with_cd("-"), "", &[]),
        (format!("mkdir -p sub && {}", with_cd("sub")), "", &[]),
        (format!("cd /srv/shop && {}", with_cd("sub")), "", &[]),
        (format!("set -e\n{}", with_cd("sub")), "", &[]),
        (format!("({})", with_cd("sub")), "", &[]),
        (format!("mkdir -p sub && {patch}"), "", &["a.py"]),
    ] {
        let input = json!({ "command": ["bash", "-lc", command], "workdir": folder });
        let record = codex_record(&codex_command("c1", &input));
        assert_eq!(paths(&record), expected, "{command} in {folder}");
    }
    let added = codex_call("c1", "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch");
    for (folder, expected) in [("/srv/shop/sub", &["sub/a.py"][..]), ("/", &[])] {
        let turn = codex("turn_context", json!({ "model": "m", "cwd": folder }));
        let record = codex_record(&[vec![turn], added.to_vec()].concat());
        assert_eq!(paths(&record), expected, "{folder}");
    }
}

#[test]
fn a_patch_in_a_folder_that_is_not_known_is_in_the_account_with_this_reason() {
    let patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch";
    let command = format!("cd $HOME && apply_patch <<'EOF'\n{patch}\nEOF");
    let input = json!({ "command": ["bash", "-lc", command], "workdir": "/srv/shop" });
    let head = codex("session_meta", json!({ "id": "s", "cwd": "/srv/shop" }));
    let lines = [vec![head], codex_command("c1", &input).to_vec()].concat();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let translation = translate(&SessionSource::file("s.jsonl", text), &Settings::default()).unwrap();
    let account = serde_json::to_value(&translation.account).unwrap();
    let expected = json!({ "skipped: the folder of the command is not known": 1 });
    assert_eq!(account["parts"]["file-change"], expected);
}

#[test]
fn a_file_that_codex_moves_in_another_folder_stays_there() {
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: a.py\n\
                 *** Move to: b.py\n@@\n-x\n+y\n*** End Patch\nEOF";
    let input = json!({ "command": ["bash", "-lc", patch], "workdir": "/srv/shop/sub" });
    assert_eq!(paths(&codex_record(&codex_command("c1", &input))), ["sub/b.py"]);
}

/// The model of each line of `a.py`, after model `m` has added it and model `n` has made this update.
fn models_of_lines(content: &[&str], update: &str) -> String {
    let content: String = content.iter().map(|line| format!("+{line}\n")).collect();
    let added = codex_call("c1", &format!("*** Begin Patch\n*** Add File: a.py\n{content}*** End Patch"));
    let turn = codex("turn_context", json!({ "model": "n" }));
    let update = format!("*** Begin Patch\n*** Update File: a.py\n{update}*** End Patch");
    let record = codex_record(&[added.to_vec(), vec![turn], codex_call("c2", &update).to_vec()].concat());
    let mut lines: Vec<(u64, String)> = ranges(&record, "a.py")
        .into_iter()
        .flat_map(|(_, model, first, last)| (first..=last).map(move |line| (line, model.clone().unwrap())))
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, model)| model).collect()
}

#[test]
fn a_hunk_is_placed_after_the_line_of_its_context() {
    let twice = ["def a():", "    return 1", "def b():", "    return 1"];
    let change = "-    return 1\n+    return 2\n";
    for (update, expected) in [
        (format!("@@\n{change}"), "mnmm"),
        (format!("@@ def b():\n{change}"), "mmmn"),
        (format!("@@   def b(): \n{change}"), "mmmn"),
        (format!("@@ def a():\n@@ def b():\n{change}"), "mmmn"),
        (format!("@@\n{change}*** End of File\n"), "mmmn"),
        (format!("@@ def c():\n{change}"), ""),
        (format!("@@ def c():\n def b():\n{change}"), "mmmn"),
    ] {
        assert_eq!(models_of_lines(&twice, &update), expected, "{update}");
    }
}

#[test]
fn lines_that_are_only_added_are_at_the_end_and_what_follows_them_in_the_patch_is_not() {
    let update = "@@\n+3\n@@\n-1\n+one\n+and a half\n";
    assert_eq!(models_of_lines(&["1", "2"], update), "nnmn");
}

#[test]
fn gemini_states_its_folder_as_a_digest() {
    // The SHA-256 digest of "/srv/shop".
    let digest = "e7c7ea0ba435fd310e06a812a878b49ac2e1ffa26f10919d35caaaa22b239a7e";
    let session = |hash: &str| {
        let diff = "Index: a.ts\n===\n--- a.ts\tCurrent\n+++ a.ts\tProposed\n@@ -7,2 +7,3 @@\n x\n+y\n z\n";
        let call = json!({
            "id": "c1", "name": "replace", "status": "success", "args": {
                "file_path": "/srv/shop/src/a.ts", "old_string": "x", "new_string": "x\ny" },
            "result": [{}], "resultDisplay": { "fileDiff": diff, "fileName": "a.ts" },
        });
        let message =
            json!({ "id": "g1", "type": "gemini", "model": "m", "content": "", "toolCalls": [call] });
        let document = json!({ "sessionId": "s", "projectHash": hash, "messages": [message] });
        translate(&SessionSource::file("s.json", document.to_string()), &Settings::default()).unwrap()
    };
    assert_eq!(by_model(&session(digest).records[0].0.value(), "src/a.ts"), [(8, 8)]);
    assert!(session(&digest.replace('e', "f")).records[0].0.value().get("file-attribution").is_none());
}

#[test]
fn opencode_states_diffs_in_the_metadata() {
    let diff = "--- a\n+++ a\n@@ -1 +1,2 @@\n one\n+two\n";
    let tool = |name: &str, input: Value, metadata: Value| {
        let state = json!({ "status": "completed", "input": input, "output": "", "metadata": metadata });
        json!({ "id": name, "type": "tool", "tool": name, "callID": name, "messageID": "m1", "state": state })
    };
    let patched = json!({ "files": [{ "filePath": "/srv/shop/b", "type": "update", "diff": diff }] });
    let parts = [
        tool(
            "edit",
            json!({ "filePath": "/srv/shop/a", "oldString": "one", "newString": "one\ntwo" }),
            json!({ "diff": diff }),
        ),
        tool(
            "apply_patch",
            json!({ "patchText": "*** Begin Patch\n*** Update File: b\n@@\n one\n+two\n*** End Patch" }),
            patched,
        ),
    ];
    let message = json!({ "info": { "id": "m1", "role": "assistant", "modelID": "m", "sessionID": "s" }, "parts": parts });
    let info = json!({ "id": "s", "directory": "/srv/shop", "time": {} });
    let export = json!({ "info": info, "messages": [message] });
    let translation =
        translate(&SessionSource::file("s.json", export.to_string()), &Settings::default()).unwrap();
    let record = &translation.records[0].0.value();
    assert_eq!((by_model(record, "a"), by_model(record, "b")), (vec![(2, 2)], vec![(2, 2)]));
}

#[test]
fn cursor_states_no_folder_so_that_the_root_is_given() {
    let call = |name: &str, input: Value| json!({ "role": "assistant", "message": { "content": [{ "type": "tool_use", "name": name, "input": input }] } });
    let lines = [
        call("Write", json!({ "path": "/srv/shop/a", "contents": "1\n2\n3" })),
        call("StrReplace", json!({ "path": "/srv/shop/a", "old_string": "2\n", "new_string": "" })),
    ];
    let written = ("ai".to_owned(), None, 1, 2);
    assert_eq!(ranges(&record("s.jsonl", &lines, Some("/srv/shop/")), "a"), [written]);
    assert!(record("s.jsonl", &lines, None).get("file-attribution").is_none());
    let first = record("s.jsonl", &lines, Some("/srv/shop"));
    assert_ne!(first["id"], record("s.jsonl", &lines, Some("/srv"))["id"]);
}

#[test]
fn paths_of_windows_are_relative_with_slashes() {
    for path in ["C:\\work\\shop\\src\\a.rs", "c:\\work\\shop\\src\\a.rs", "c:/work/shop/src/a.rs"] {
        let mut call = written("c1", "a\n");
        call[0]["cwd"] = json!("C:\\work\\shop");
        call[1]["cwd"] = json!("C:\\work\\shop");
        call[0]["message"]["content"][0]["input"]["file_path"] = json!(path);
        assert_eq!(by_model(&claude_record(&[call]), "src/a.rs"), [(1, 1)], "{path}");
    }
}

#[test]
fn the_work_for_many_changes_of_one_file_is_limited() {
    let long = "x\n".repeat(2_000_000);
    let mut calls = vec![written("c1", &long)];
    calls.extend((0..500).map(|number| replaced(&format!("e{number}"), "x\n", "y\n")));
    let start = std::time::Instant::now();
    let record = claude_record(&calls);
    assert!(record.get("file-attribution").is_none());
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn a_diff_of_pi_numbers_its_lines_before_or_after_the_change() {
    let message =
        |message: Value| json!({ "type": "message", "id": "1", "parentId": null, "message": message });
    let edits = json!([{ "oldText": "b", "newText": "b2\nb3" }, { "oldText": "y", "newText": "y2" }]);
    let call = json!({ "type": "toolCall", "id": "c", "name": "edit", "arguments": { "path": "a.rs", "edits": edits } });
    let record = |diff: &str| {
        let lines = [
            json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/srv/shop" }),
            message(json!({ "role": "assistant", "model": "m", "content": [call] })),
            message(
                json!({ "role": "toolResult", "toolCallId": "c", "content": [], "isError": false, "details": { "diff": diff } }),
            ),
        ];
        record("s.jsonl", &lines, None)
    };
    let diff = "  1 a\n- 2 b\n+ 2 b2\n+ 3 b3\n  3 c\n    ...\n 10 x\n-11 y\n+12 y2";
    assert_eq!(by_model(&record(diff), "a.rs"), [(2, 3), (12, 12)]);
    let without_gap = diff.replace("    ...\n", "");
    assert_eq!(
        by_model(&record(&without_gap), "a.rs"),
        [(2, 3), (12, 12)],
        "the numbers say where a line is"
    );
    let out_of_order = record("-11 y\n+11 y2\n  1 a\n- 2 b\n+ 2 b2");
    assert!(out_of_order.get("file-attribution").is_none(), "the content of the file is not known");
}

#[test]
fn lines_that_the_user_changed_before_gemini_wrote_them_are_of_both() {
    let display = json!({
        "fileDiff": "--- a\n+++ a\n@@ -0,0 +1,1 @@\n+one\n", "diffStat": { "user_added_lines": 1 },
    });
    let call = json!({
        "id": "c", "name": "write_file", "args": { "file_path": "a.rs", "content": "one\n" }, "status": "success",
        "result": [{ "functionResponse": { "id": "c", "response": { "output": "written" } } }], "resultDisplay": display,
    });
    let session = json!({
        "sessionId": "s", "projectHash": "p",
        "messages": [{ "type": "gemini", "id": "1", "model": "m", "content": "", "toolCalls": [call] }],
    });
    let record = record("s.json", &[session], None);
    assert_eq!(ranges(&record, "a.rs"), [("mixed".to_owned(), Some("m".to_owned()), 1, 1)]);
}

#[test]
fn what_a_line_of_qwen_code_says_of_one_call_is_not_said_of_another() {
    let line = |kind: &str, role: &str, parts: Value| {
        json!({
            "type": kind, "sessionId": "s", "uuid": kind, "cwd": "/srv/shop", "model": "m",
            "message": { "role": role, "parts": parts },
        })
    };
    let call = |id: &str, path: &str, content: &str| json!({ "functionCall": { "id": id, "name": "write_file", "args": { "file_path": path, "content": content } } });
    let response =
        |id: &str| json!({ "functionResponse": { "id": id, "response": { "output": "written" } } });
    let calls =
        line("assistant", "model", json!([call("c1", "a.rs", "1\n2\n3\n"), call("c2", "b.rs", "1\n")]));
    let mut results = line("tool_result", "user", json!([response("c1"), response("c2")]));
    results["toolCallResult"] = json!({
        "callId": "c2", "status": "success",
        "resultDisplay": { "fileDiff": "--- b\n+++ b\n@@ -0,0 +1,1 @@\n+1\n", "diffStat": { "user_added_lines": 1 } },
    });
    let record = record("s.jsonl", &[calls, results], None);
    assert_eq!((by_model(&record, "a.rs"), by_model(&record, "b.rs")), (vec![(1, 3)], vec![(1, 1)]));
}
