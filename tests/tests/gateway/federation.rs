//! Servers that none of us wrote, several behind one endpoint: to a client that none of us wrote either, each of them is as it
//! is alone, but for the names.

use std::process::Command;

use black_box::{Gateway, everything_over_stdio, python_server, run_python_on};
use serde_json::{Value, json};

/// A server by its prefix, its command line, and what a client does with it.
type Server = (&'static str, Vec<String>, Value);

fn transcript(mode: &str, target: &[String], calls: &Value) -> Value {
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    run_python_on("mcp_client.py", &[&[mode][..], &target].concat(), calls)
}

fn behind_one_endpoint(servers: &[Server]) -> Gateway {
    let tables = servers.iter().map(|(prefix, command, _)| {
        format!("[[route.server]]\nprefix = \"{prefix}\"\ncommand = {command:?}\n")
    });
    Gateway::routed(&format!("without_vap = \"advisory\"\n{}", tables.collect::<String>()))
}

/// What a client calls, with the names of outside.
fn all_calls(servers: &[Server]) -> Value {
    let outside = servers.iter().flat_map(|(prefix, _, calls)| {
        calls.as_array().unwrap().iter().map(move |call| {
            let name = call[0].as_str().unwrap();
            json!([format!("{prefix}__{name}"), call[1]])
        })
    });
    outside.collect()
}

fn list<'a>(transcript: &'a Value, name: &str) -> &'a [Value] {
    transcript[name][name].as_array().map_or(&[], Vec::as_slice)
}

/// The answers to the calls, which come last.
fn answers(transcript: &Value, calls: usize) -> Vec<Value> {
    let results = transcript["results"].as_array().unwrap();
    results[results.len() - calls..].to_vec()
}

#[track_caller]
fn must_be_the_same(mode: &str, servers: &[Server]) {
    let gateway = behind_one_endpoint(servers);
    let running = gateway.start();
    let calls = all_calls(servers);
    let through = transcript(mode, &[running.url().to_owned()], &calls);
    running.stop();

    let (mut tools, mut results, mut heard) = (Vec::new(), Vec::new(), Vec::new());
    for (prefix, command, calls) in servers {
        let direct = transcript(mode, command, calls);
        assert_eq!(through["protocol"], direct["protocol"], "{prefix}");
        for tool in list(&direct, "tools") {
            let mut tool = tool.clone();
            tool["name"] = format!("{prefix}__{}", tool["name"].as_str().unwrap()).into();
            tools.push(tool);
        }
        results.extend(answers(&direct, calls.as_array().unwrap().len()));
        heard.extend(direct["heard"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(list(&through, "tools"), tools);
    for (at, (through, direct)) in answers(&through, results.len()).into_iter().zip(results).enumerate() {
        assert_eq!(through, direct, "{}", calls[at]);
    }
    assert_eq!(by_kind(through["heard"].as_array().unwrap()), by_kind(&heard));
}

/// What a client heard, each kind in its order: a server writes its log lines beside the progress of a call, now before it
/// and now after.
fn by_kind(heard: &[Value]) -> Vec<Value> {
    let mut heard = heard.to_vec();
    heard.sort_by_key(|heard| heard[0].to_string());
    heard
}

fn time() -> Server {
    let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    ("time", python_server("mcp_server_time"), json!([["convert_time", noon], ["no_such_tool", {}]]))
}

fn git(repository: &str) -> Server {
    let mut command = python_server("mcp_server_git");
    command.extend(["--repository".to_owned(), repository.to_owned()]);
    ("git", command, json!([["git_status", { "repo_path": repository }], ["git_status", {}]]))
}

fn everything() -> Server {
    let calls = json!([
        ["echo", { "message": "\u{1f600}\u{2028}" }],
        ["get-sum", { "a": 1, "b": 2.5 }],
        ["trigger-long-running-operation", { "duration": 1, "steps": 3 }],
        ["trigger-elicitation-request", {}],
        ["trigger-sampling-request", { "prompt": "say" }],
        ["get-roots-list", {}],
    ]);
    ("every", everything_over_stdio(), calls)
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("git").args(["init", "--quiet"]).arg(folder.path()).status().unwrap().success());
    folder
}

#[test]
fn servers_of_both_eras_are_one_server_of_the_older_one() {
    let repository = repository();
    let path = repository.path().display().to_string();
    must_be_the_same("legacy", &[everything(), time(), git(&path)]);
}

#[test]
fn servers_of_the_newer_era_are_one_of_that_era() {
    let repository = repository();
    let path = repository.path().display().to_string();
    must_be_the_same("auto", &[time(), git(&path)]);
    must_be_the_same("2026-07-28", &[git(&path), time()]);
}

#[test]
fn resources_and_prompts_are_read_by_the_names_that_the_lists_give() {
    let servers = [everything(), time()];
    let gateway = behind_one_endpoint(&servers);
    let running = gateway.start();
    let links = json!([["every__get-resource-links", { "count": 2 }]]);
    let through = transcript("auto", &[running.url().to_owned()], &links);
    running.stop();
    let uris: Vec<&str> =
        list(&through, "resources").iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert!(!uris.is_empty() && uris.iter().all(|uri| uri.starts_with("every+demo://")), "{uris:?}");
    let results = through["results"].as_array().unwrap();
    for (uri, read) in uris.iter().zip(results).take(3) {
        assert_eq!(read["contents"][0]["uri"], *uri, "{read}");
    }
    let prompts = list(&through, "prompts");
    assert!(
        !prompts.is_empty()
            && prompts.iter().all(|prompt| prompt["name"].as_str().unwrap().starts_with("every__"))
    );
    assert!(results.iter().all(|result| result.get("failed").is_none()), "{results:?}");
    let link = &results.last().unwrap()["content"][1];
    assert!(link["uri"].as_str().unwrap().starts_with("every+demo://"), "{link}");
}
