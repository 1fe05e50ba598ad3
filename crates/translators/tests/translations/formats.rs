//! The mapping of each format.

use serde_json::{Value, json};
use translators::{NativeOutcome, SessionSource, SourceFile};

use crate::fixtures::{
    entries, file, of_type, opencode_export, opencode_objects, opencode_tree, record, translated, usages,
};

#[test]
fn claude_code() {
    let record = record(&file("claude.jsonl"));
    let session = &record["session"];
    assert_eq!(session["session-id"], "ses-1");
    assert_eq!(session["session-start"], "2026-03-01T10:00:00.000Z");
    assert_eq!(session["session-end"], "2026-03-01T10:00:07.000Z");
    let agent = json!({
        "model-id": "claude-fixture-1", "model-provider": "anthropic", "models": ["claude-fixture-1"],
        "cli-name": "claude-code", "cli-version": "2.1.0",
    });
    assert_eq!(session["agent-meta"], agent);
    assert_eq!(session["environment"], json!({ "working-dir": "/srv/shop" }));
    assert_eq!(record["vcs"], json!({ "type": "git", "branch": "main" }));
    // The usage is that of one message, though two lines repeat it.
    let usage = json!({ "input": 3210, "cached": 3000, "output": 40, "total": 3250 });
    assert_eq!(usages(&record), [usage]);
    let results = of_type(&record, "tool-result");
    assert_eq!(results[0]["id"], "u2", "a line of results only is not a message of the user");
    assert_eq!((&results[0]["call-id"], &results[0]["is-error"]), (&json!("call-1"), &json!(true)));
    assert_eq!(of_type(&record, "user").len(), 1);
    let calls = of_type(&record, "tool-call");
    assert_eq!(calls[0]["input"], json!({ "command": "make test", "timeout": null }), "inputs are unchanged");
    assert_eq!(of_type(&record, "reasoning")[0]["native"]["signature"], "c2ln");
    let events: Vec<Value> =
        of_type(&record, "system-event").iter().map(|event| event["event-type"].clone()).collect();
    assert_eq!(events, ["summary", "system/turn_duration", "novelty", "non-object"]);
    let repeated = entries(&record).into_iter().find(|entry| entry["native"]["repeated-id"] == "a2").unwrap();
    assert_eq!(repeated["content"], "Two.");
}

#[test]
fn codex() {
    let record = record(&file("codex.jsonl"));
    assert_eq!(record["session"]["session-id"], "rollout-1");
    assert_eq!(record["session"]["agent-meta"]["model-provider"], "openai");
    assert_eq!(record["vcs"]["repository"], "https://git.example/shop.git", "without the password");
    assert_eq!(
        usages(&record),
        [json!({ "input": 100, "cached": 60, "output": 20, "reasoning": 5, "total": 120 })]
    );
    let calls = of_type(&record, "tool-call");
    assert_eq!(calls[0]["input"], json!({ "command": ["ls"] }), "arguments in a text are parsed");
    assert_eq!(calls[1]["input"], "*** Begin Patch");
    assert_eq!(calls[2]["name"], "web_search");
    let errors: Vec<Value> =
        of_type(&record, "tool-result").iter().map(|result| result["is-error"].clone()).collect();
    assert_eq!(errors, [true, false]);
    let users = of_type(&record, "user");
    assert_eq!((users.len(), &users[1]["native"]["role"]), (2, &json!("developer")));
    let reasoning = &of_type(&record, "reasoning")[0];
    assert_eq!((&reasoning["content"], &reasoning["encrypted"]), (&json!("Use ls"), &json!("opaque")));
}

#[test]
fn codex_without_envelopes() {
    let record = record(&file("codex-bare.jsonl"));
    assert_eq!(record["session"]["session-id"], "codex-bare", "the file's name, never a random one");
    let kinds: Vec<Value> = entries(&record).iter().map(|entry| entry["type"].clone()).collect();
    assert_eq!(kinds, ["user", "tool-call", "tool-result", "assistant"]);
}

#[test]
fn gemini_in_one_object() {
    let record = record(&file("gemini.json"));
    assert_eq!(record["session"]["agent-meta"]["model-provider"], "google");
    assert_eq!(
        usages(&record),
        [json!({ "input": 100, "cached": 30, "output": 10, "reasoning": 7, "total": 118 })]
    );
    assert_eq!(of_type(&record, "reasoning")[0]["subject"], "Plan");
    let results = of_type(&record, "tool-result");
    assert_eq!((results.len(), &results[0]["is-error"]), (1, &json!(true)), "a cancelled call has no result");
    assert_eq!(of_type(&record, "tool-call").len(), 2);
    assert_eq!(of_type(&record, "assistant")[1]["content"], json!([{ "text": "It failed." }]));
}

#[test]
fn gemini_in_lines() {
    let record = record(&file("gemini.jsonl"));
    assert_eq!(record["session"]["session-end"], "2026-03-01T10:00:09.000Z");
    let found: Vec<(Value, Value)> = record["session"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let name = entry.get("content").or(entry.get("event-type")).unwrap();
            (name.clone(), entry["withdrawn"].clone())
        })
        .collect();
    let shown = |name: Value| (name, Value::Null);
    assert_eq!(
        found,
        [
            shown(json!("Hello")),
            (json!("Hello!"), json!("replaced")),
            (json!("Wrong turn"), json!("rewind")),
            shown(json!("rewind")),
            (json!("Right turn"), json!("replaced")),
            shown(json!("warning")),
        ]
    );
}

#[test]
fn codex_reports_items_in_newer_versions() {
    let translation = translated(&file("codex-items.jsonl"));
    let record = &translation.records[0].0.value();
    let results = of_type(record, "tool-result");
    let errors: Vec<(&Value, &Value)> =
        results.iter().map(|result| (&result["call-id"], &result["is-error"])).collect();
    let call = |id: &'static str| json!(id);
    let expected = [
        (call("call_7526ef769dcc"), json!(false)),
        (call("call_6ce1ce2125ac"), json!(false)),
        (call("call_62749c9117f5"), json!(false)),
        (call("call_2d1dd70c7aa2"), json!(true)),
        (call("call_f31b834ea6da"), Value::Null),
    ];
    assert_eq!(errors, expected.iter().map(|(call, error)| (call, error)).collect::<Vec<_>>());
    let echoes = &translation.account.entries["event_msg/item_completed"];
    let echo = NativeOutcome::Skipped("echo of a response item");
    assert_eq!((echoes[&echo], echoes[&NativeOutcome::Kept("system-event")]), (4, 4));
    let files = &record["file-attribution"]["files"];
    let lines = |file: usize| files[file]["conversations"][0]["ranges"].clone();
    assert_eq!(
        (&files[0]["path"], lines(0)),
        (&json!("main.py"), json!([{ "start-line": 2, "end-line": 3 }]))
    );
    assert_eq!(
        (&files[1]["path"], lines(1)),
        (&json!("new.py"), json!([{ "start-line": 1, "end-line": 2 }]))
    );
}

#[test]
fn gemini_repeats_results_as_what_the_user_says() {
    let translation = translated(&file("gemini-results.jsonl"));
    let record = &translation.records[0].0.value();
    assert_eq!(of_type(record, "tool-result").len(), 2);
    assert_eq!(of_type(record, "user").len(), 2, "what is no result stays");
    let users = &translation.account.entries["user"];
    assert_eq!(users[&NativeOutcome::Skipped("repeats the results of tool calls")], 2);
    let other = json!({
        "sessionId": "s", "projectHash": "p",
        "messages": [
            { "type": "gemini", "toolCalls": [{ "id": "c", "name": "t", "args": {}, "status": "cancelled", "result": [{ "text": "x" }] }] },
            { "type": "user", "content": [{ "text": "x" }] },
            { "type": "user", "content": [{ "functionResponse": { "id": "c", "response": { "output": "stated nowhere else" } } }] },
        ],
    });
    let other = crate::fixtures::record(&SessionSource::file("s.json", other.to_string()));
    assert_eq!(of_type(&other, "user").len(), 2);
    assert_eq!(of_type(&other, "tool-result")[0]["is-error"], true, "a call that was cancelled");
}

#[test]
fn a_call_of_cursors_composer_that_was_cancelled_or_rejected_has_failed() {
    for (status, decision, expected) in [
        (json!("completed"), json!("accepted"), json!(false)),
        (json!("completed"), json!("rejected"), json!(true)),
        (json!("cancelled"), Value::Null, json!(true)),
        (json!("error"), Value::Null, json!(true)),
        (Value::Null, json!("rejected"), json!(true)),
        (Value::Null, Value::Null, Value::Null),
    ] {
        let call = json!({ "toolCallId": "t", "name": "edit_file", "result": "x", "status": status, "userDecision": decision });
        let row = |path: &str, value: Value| SourceFile {
            path: path.to_owned(),
            bytes: value.to_string().into_bytes(),
        };
        let rows = vec![
            row("composerData:c", json!({ "composerId": "c" })),
            row("bubbleId:c:b", json!({ "type": 2, "toolFormerData": call })),
        ];
        let record = record(&SessionSource::rows(rows));
        assert_eq!(of_type(&record, "tool-result")[0]["is-error"], expected, "{call}");
    }
}

#[test]
fn qwen_code() {
    let record = record(&file("qwen.jsonl"));
    let session = &record["session"];
    assert_eq!(session["session-id"], "0658c466-c6e8-4b04-826d-0001aeb71bd9");
    assert_eq!(session["session-start"], "2026-11-29T01:55:18.247Z");
    let agent = json!({
        "model-id": "fixture-1", "model-provider": "unknown", "models": ["fixture-1"],
        "cli-name": "qwen-code", "cli-version": "0.24.4",
    });
    assert_eq!(session["agent-meta"], agent);
    assert_eq!(session["environment"], json!({ "working-dir": "/srv/shop" }));
    assert_eq!(record["vcs"], json!({ "type": "git", "branch": "master" }));
    let usage = json!({ "input": 100, "cached": 60, "output": 20, "reasoning": 5, "total": 120 });
    assert_eq!(usages(&record), vec![usage; 8], "one for each answer of the model");
    assert_eq!(of_type(&record, "reasoning")[0]["content"], "List the folder first.");
    assert_eq!(of_type(&record, "user").len(), 1, "a line of results only is no message of the user");
    let calls = of_type(&record, "tool-call");
    assert_eq!(
        (&calls[0]["name"], &calls[0]["input"]["command"]),
        (&json!("run_shell_command"), &json!("ls"))
    );
    let results = of_type(&record, "tool-result");
    assert_eq!(results[1]["output"], "import os\nprint('a')\nprint('z')\n");
    let failed = |result: &&Value| result["is-error"] == true;
    let failed: Vec<&Value> = results.iter().filter(failed).map(|result| &result["status"]).collect();
    assert_eq!((results.len(), failed), (9, vec![&json!("error"), &json!("error"), &json!("cancelled")]));
    let events: Vec<Value> =
        of_type(&record, "system-event").iter().map(|event| event["event-type"].clone()).collect();
    assert_eq!(
        events,
        [
            "system/attribution_snapshot",
            "system/ui_telemetry",
            "system/ui_telemetry",
            "system/at_command",
            "system/chat_compression"
        ]
    );
    let files = &record["file-attribution"]["files"];
    assert_eq!((&files[0]["path"], &files[1]["path"]), (&json!("main.py"), &json!("new.py")));
    let ranges = json!([{ "start-line": 2, "end-line": 3 }]);
    assert_eq!(files[0]["conversations"][0]["ranges"], ranges, "as the result states it");
}

#[test]
fn a_subagent_of_qwen_code_has_the_session_of_its_caller() {
    let record = record(&file("qwen-agent.jsonl"));
    assert_eq!(record["session"]["session-id"], "0658c466-c6e8-4b04-826d-0001aeb71bd9");
    let kinds: Vec<Value> = entries(&record).iter().map(|entry| entry["type"].clone()).collect();
    assert_eq!(
        kinds,
        ["user", "assistant", "reasoning", "assistant", "tool-call", "tool-result", "assistant"]
    );
    let result = &of_type(&record, "tool-result")[0];
    assert_eq!(result["is-error"], false, "its response has no error, and its line no status");
    assert_eq!(result["native"]["agentId"], "general-purpose-call_767806ecda7b");
}

#[test]
fn pi() {
    let record = record(&file("pi.jsonl"));
    let session = &record["session"];
    assert_eq!(session["session-id"], "01a22509-accc-7d94-b1e5-5b1863668b5a");
    let agent = json!({
        "model-id": "fixture-1", "model-provider": "fake", "models": ["fixture-1"], "cli-name": "pi",
    });
    assert_eq!(session["agent-meta"], agent);
    assert_eq!(session["environment"], json!({ "working-dir": "/srv/shop" }));
    let usage = &usages(&record)[0];
    let counts = ["input", "cached", "output", "total"].map(|name| usage[name].as_u64().unwrap());
    assert_eq!(counts, [1442, 60, 20, 1462]);
    assert!(usage["cost"].as_f64().unwrap() > 0.0);
    assert_eq!(of_type(&record, "reasoning")[0]["content"], "List first.");
    let calls: Vec<Value> = of_type(&record, "tool-call").iter().map(|call| call["name"].clone()).collect();
    assert_eq!(calls, ["bash", "read", "write", "edit", "bash", "read", "no_such_tool"]);
    let errors: Vec<Value> =
        of_type(&record, "tool-result").iter().map(|result| result["is-error"].clone()).collect();
    assert_eq!(errors, [false, false, false, false, true, true, true]);
    let events: Vec<Value> =
        of_type(&record, "system-event").iter().map(|event| event["event-type"].clone()).collect();
    assert_eq!(events, ["session", "model_change", "thinking_level_change"]);
    let files = &record["file-attribution"]["files"];
    assert_eq!((&files[0]["path"], &files[1]["path"]), (&json!("main.py"), &json!("new.py")));
    assert_eq!(files[0]["conversations"][0]["ranges"], json!([{ "start-line": 2, "end-line": 3 }]));
}

#[test]
fn codex_states_what_was_used_since_or_only_the_total() {
    let usage = |input: u64, output: u64| json!({ "input_tokens": input, "output_tokens": output, "total_tokens": input + output });
    let line = |info: Value| {
        let payload = json!({ "type": "token_count", "info": info });
        json!({ "timestamp": "2026-03-01T10:00:00Z", "type": "event_msg", "payload": payload })
    };
    let infos = [
        json!({ "total_token_usage": usage(100, 10) }),
        json!({ "total_token_usage": usage(100, 10) }),
        json!({ "total_token_usage": usage(250, 30) }),
        json!({ "total_token_usage": usage(300, 40), "last_token_usage": usage(50, 10) }),
        json!({ "total_token_usage": usage(20, 2) }),
        json!({ "last_token_usage": usage(1, 1) }),
        json!({ "total_token_usage": null, "last_token_usage": null }),
    ];
    let text = infos.map(|info| format!("{}\n", line(info))).concat();
    let record = record(&SessionSource::file("rollout.jsonl", text));
    let counted: Vec<Value> =
        entries(&record).iter().map(|entry| entry["data"]["token-usage"].clone()).collect();
    let counted = counted.iter().map(|usage| (usage["input"].as_u64(), usage["total"].as_u64()));
    let expected =
        [Some((100, 110)), None, Some((150, 170)), Some((50, 60)), Some((20, 22)), Some((1, 2)), None];
    assert!(counted.eq(expected.map(|usage| (usage.map(|(input, _)| input), usage.map(|(_, total)| total)))));
}

#[test]
fn opencode_has_one_record_for_each_session() {
    let translation = translated(&opencode_tree());
    let ids: Vec<&str> = translation.records.iter().map(|(record, _)| record.session_id()).collect();
    assert_eq!(ids, ["ses_1", "ses_2"]);
    let record = &translation.records[0].0.value();
    assert_eq!(record["session"]["session-start"], "2025-10-09T08:53:20.000Z");
    let usage =
        json!({ "input": 160, "cached": 100, "output": 20, "reasoning": 3, "total": 183, "cost": 0.25 });
    assert_eq!(usages(record), [usage]);
    let results = of_type(record, "tool-result");
    assert_eq!(results.len(), 1, "a running tool has no result");
    assert_eq!((&results[0]["status"], &results[0]["is-error"]), (&json!("completed"), &json!(true)));
    assert_eq!(of_type(record, "reasoning")[0]["encrypted"], "opaque");
    assert_eq!(of_type(record, "assistant")[0]["content"], "It fails.");
    let share =
        of_type(record, "system-event").into_iter().find(|event| event["event-type"] == "share").unwrap();
    assert_eq!(share["data"]["secret"], "[redacted:secret-member]");
}

#[test]
fn opencode_gives_the_same_entries_from_tree_objects_and_export() {
    let messages = |source| {
        let translation = translated(&source);
        let record =
            translation.records.iter().find(|(record, _)| record.session_id() == "ses_1").unwrap().0.clone();
        let entries = record.value()["session"]["entries"].as_array().unwrap().clone();
        entries.into_iter().filter(|entry| entry["type"] != "system-event").collect::<Vec<_>>()
    };
    let tree = messages(opencode_tree());
    assert_eq!(tree.len(), 2);
    assert_eq!(messages(opencode_export()), tree);
    let count = |messages: Vec<Value>| {
        messages.iter().map(|message| message["children"].as_array().map_or(0, Vec::len)).sum::<usize>()
    };
    assert_eq!(count(messages(opencode_objects())), count(tree));
}

#[test]
fn cursor() {
    let record = record(&file("cursor.jsonl"));
    assert_eq!(record["session"]["session-id"], "cursor");
    let kinds: Vec<Value> = entries(&record).iter().map(|entry| entry["type"].clone()).collect();
    assert_eq!(
        kinds,
        ["user", "assistant", "reasoning", "tool-call", "tool-result", "assistant", "system-event"]
    );
}

#[test]
fn native_content_beside_what_is_translated_stays_in_the_record() {
    let all = |source: &SessionSource| translated(source).records[0].0.value().to_string();
    let results = json!({
        "type": "user", "sessionId": "s", "uuid": "u1", "parentUuid": "u0", "timestamp": "2026-03-01T10:00:00Z",
        "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "one" },
            { "type": "tool_result", "tool_use_id": "c2", "content": "two" },
        ] },
    });
    let record = record(&SessionSource::file("s.jsonl", results.to_string()));
    let second = &of_type(&record, "tool-result")[1];
    assert_eq!(
        (&second["timestamp"], &second["parent-id"], &second["native"]["uuid"]),
        (&json!("2026-03-01T10:00:00Z"), &json!("u0"), &json!("u1"))
    );
    let lines = [
        json!({ "sessionId": "s", "projectHash": "p", "startTime": "beginning" }),
        json!({ "$set": { "messages": "kept-1" }, "by": "kept-2" }),
        json!({ "$rewindTo": "m1", "because": "kept-3" }),
    ];
    let gemini = lines.map(|line| format!("{line}\n")).concat();
    let gemini = all(&SessionSource::file("s.jsonl", gemini));
    let export = json!({
        "info": { "id": "ses_1", "time": { "created": "dawn" } }, "exporter": "kept-4",
        "messages": [{ "info": { "id": "m", "role": "user", "sessionID": "ses_1" }, "parts": "kept-5", "more": "kept-6" }],
    });
    let export = all(&SessionSource::file("s.json", export.to_string()));
    for (text, kept) in [
        (&gemini, ["beginning", "kept-1", "kept-2", "kept-3"]),
        (&export, ["dawn", "kept-4", "kept-5", "kept-6"]),
    ] {
        kept.iter().for_each(|kept| assert!(text.contains(kept), "{kept}: {text}"));
    }
}

#[test]
fn the_project_of_an_opencode_session_says_whether_it_is_in_git() {
    let session = json!({ "id": "s", "projectID": "p", "time": {} });
    for (vcs, expected) in [(json!("git"), Some(json!({ "type": "git" }))), (Value::Null, None)] {
        let project = json!({ "id": "p", "worktree": "/srv/shop", "vcs": vcs, "time": { "created": 1 } });
        let record = record(&SessionSource::file("s.json", format!("{session}{project}")));
        assert_eq!(record.get("vcs"), expected.as_ref());
    }
}

#[test]
fn a_second_object_of_an_opencode_session_makes_no_second_record() {
    let session = |title: &str| json!({ "id": "s", "projectID": "p", "time": {}, "title": title });
    let objects = format!("{}{}", session("first"), session("second"));
    let record = record(&SessionSource::file("s.json", objects));
    assert_eq!(record["session"]["native"]["title"], "first");
    assert_eq!(of_type(&record, "system-event")[0]["data"]["title"], "second");
}
