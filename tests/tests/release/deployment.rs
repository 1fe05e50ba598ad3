//! The files of `deploy/` for Compose, Helm, Prometheus and Grafana, checked by those tools, and by the program: it must
//! accept every configuration that they contain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use black_box::cli::{Folder, repository};
use black_box::{VerificationProcess, deployment_tool, program};
use serde_json::{Value, json};

use crate::run;

/// Images that a trial needs.
const IMAGES: &[&str] = &["TABELLION_IMAGE", "POSTGRES_IMAGE", "PROMETHEUS_IMAGE", "GRAFANA_IMAGE"];
/// Services that have a dashboard.
const DASHBOARDS: &[&str] = &["gateway", "log", "monitor", "verification", "witness"];

#[test]
fn compose_accepts_the_trial_and_the_program_every_configuration_in_it() {
    let folder = Folder::new();
    let trial = folder.path("trial");
    let mut prepare = Command::new(repository("deploy/compose/prepare"));
    folder.settle(&mut prepare);
    run(prepare.arg(&trial).env("TABELLION", program()));
    let services = compose(&trial);
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    let ours = ["gateway", "log", "monitor", "verification", "witness-1", "witness-2"];
    let others = ["grafana", "postgres", "prometheus"];
    assert_eq!(names, ours.into_iter().chain(others).collect::<BTreeSet<_>>());
    for name in ours {
        let service = &services[name];
        assert_eq!(service["read_only"], true, "{name}");
        let command: Vec<&str> =
            service["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let parsed = folder.run(&[command.as_slice(), &["--help"]].concat());
        parsed.must_end_with(0);
        for volume in service["volumes"].as_array().unwrap() {
            let path = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(Path::new(path).exists(), "{name} mounts {path}");
        }
    }
    check_log(&folder, &trial, &services["log"]["environment"]);
    folder
        .run(&[
            "gateway",
            "check",
            "--offline",
            "--config",
            trial_file(&trial, "gateway/gateway.toml").as_str(),
        ])
        .must_end_with(0);
    check_monitor(&folder, &trial);
    check_verification(&folder, &trial);
}

/// Returns the services as docker-compose reads them.
fn compose(trial: &Path) -> serde_json::Map<String, Value> {
    let file = trial.join(".env");
    let mut environment = fs::read_to_string(&file).unwrap();
    for image in IMAGES {
        environment = environment.replace(&format!("{image}=\n"), &format!("{image}=example\n"));
    }
    fs::write(&file, environment).unwrap();
    let mut command = Command::new("docker-compose");
    command.arg("--env-file").arg(&file).arg("--file").arg(repository("deploy/compose/compose.yaml"));
    yaml(&run(command.arg("config")))["services"].as_object().unwrap().clone()
}

/// The log's configuration, with the paths that it has outside of the container.
fn check_log(folder: &Folder, trial: &Path, environment: &Value) {
    let config = trial_file(trial, "log/tabellion.toml");
    let mut command = folder.command(&["config", "check", "--config", &config]);
    for (name, value) in environment.as_object().unwrap() {
        let value = value.as_str().unwrap().replace("/etc/tabellion", &trial_file(trial, "log"));
        command.env(name, value.replace("/var/lib/tabellion", &trial_file(trial, "log/state")));
    }
    run(&mut command);
    let policy = trial_file(trial, "log/policy.toml");
    folder.run(&["policy", "validate", &policy]).must_end_with(0);
    assert!(fs::read_to_string(&policy).unwrap().contains("https://gateway.example"));
    let witnesses = folder.run(&["witness", "list", "--policy", &trial_file(trial, "log/witnesses.txt")]);
    assert!(witnesses.must_end_with(0).text().contains("w2"), "{witnesses}");
}

/// The log does not answer here, which is the only thing that a round may find wrong with the configuration.
fn check_monitor(folder: &Folder, trial: &Path) {
    let text = fs::read_to_string(trial.join("monitor/monitor.toml")).unwrap();
    let text = text.replace("/var/lib/tabellion", &trial_file(trial, "monitor/state"));
    folder.write("monitor.toml", text.replace("http://log:7390/", "http://127.0.0.1:9/"));
    folder.run(&["monitor", "once", "--config", "monitor.toml"]).must_end_with(7);
}

/// The verification service starts with its configuration, and the log's policy admits what its key signs.
fn check_verification(folder: &Folder, trial: &Path) {
    let mut text = fs::read_to_string(trial.join("verification/verification.toml")).unwrap();
    for (there, here) in [
        ("0.0.0.0:7395", "127.0.0.1:0"),
        ("0.0.0.0:7396", "127.0.0.1:0"),
        ("/var/lib/tabellion", trial_file(trial, "verification/state").as_str()),
        ("http://log:7390", "http://127.0.0.1:9"),
    ] {
        text = text.replace(there, here);
    }
    let config = trial_file(trial, "verification/here.toml");
    fs::write(&config, text).unwrap();
    let service = VerificationProcess::start_configured(folder, &config);
    let refused = service.verify(&json!({})).unwrap();
    assert_eq!(refused.status, 401, "only its client may send requests");
    let receipt = json!({
        "vrf_version": "1.0", "receipt_id": "7d0fae86-3a5c-4b0e-9c55-0f6a1c1d2e3f", "verified_at": "2026-01-01T00:00:00Z",
        "tier": 0, "verdict": "pass", "results": { "total": 1, "passed": 1, "failed": 0, "errors": 0 },
        "hashes": { "output": format!("sha256:{}", "0f".repeat(32)) },
        "metadata": { "structural": true, "verifier": "test/1" },
    });
    folder.write("receipt.json", receipt.to_string());
    let (key, policy) =
        (trial_file(trial, "verification/verifier.key"), trial_file(trial, "log/policy.toml"));
    let sign =
        ["vrf", "sign", "receipt.json", "--key", &key, "--sub", "did:web:agent.example", "-o", "vrf.cose"];
    folder.run(&sign).must_end_with(0);
    let tested = folder.run(&["policy", "test", &policy, "vrf.cose", "--json"]).must_end_with(0).json();
    assert_eq!(tested["admitted"], 1, "{tested}");
}

fn trial_file(trial: &Path, name: &str) -> String {
    trial.join(name).display().to_string()
}

#[test]
fn helm_renders_the_chart_as_kubernetes_expects_and_the_program_accepts_its_configuration() {
    let (folder, policy) = log_files();
    let values = |storage: &str, replicas: u32| log_values(&policy, storage, replicas);
    for (storage, replicas) in [("postgres", 3), ("sqlite", 1)] {
        let objects = rendered(&values(storage, replicas)).unwrap();
        let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds.contains(&"PodDisruptionBudget"), replicas > 1, "{kinds:?}");
        check_pod(object(&objects, "StatefulSet", "log"), "/readyz");
        check_settings(&folder, object(&objects, "ConfigMap", "log"), storage);
        assert!(objects.iter().all(|object| !name_of(object).contains("gateway")), "it is off by default");
    }
    let refused = rendered(&values("sqlite", 2)).unwrap_err();
    assert!(refused.contains("set replicas to 1"), "{refused}");
    let refused = rendered(&json!({ "origin": "log.example" })).unwrap_err();
    assert!(refused.contains("image"), "{refused}");
}

#[test]
fn helm_adds_a_gateway_a_monitor_and_a_witness_whose_configurations_the_program_accepts() {
    let (folder, policy) = log_files();
    let keys = folder.run(&["key", "show", "--json", "--config", "log/tabellion.toml"]);
    let vkey = keys.must_end_with(0).json()["checkpoint"]["vkey"].as_str().unwrap().to_owned();
    let logs = format!("logs/v0\nvkey {vkey}\n");
    let mut values = log_values(&policy, "postgres", 2);
    values["gateway"] = json!({
        "enabled": true, "issuer": "https://gateway.example", "hosts": ["gateway.example"], "secret": "gateway-files",
        "settings": "[[route]]\npath = \"/mcp\"\nupstream = \"http://mcp.example/mcp\"", "logSettings": "receipt_wait = \"5s\"",
    });
    values["monitor"] = json!({
        "enabled": true,
        "settings": format!("[[log]]\nname = \"ours\"\nurl = \"http://127.0.0.1:9/\"\nvkey = \"{vkey}\""),
    });
    values["witness"] = json!({ "enabled": true, "name": "w1.example", "logs": logs });
    let objects = rendered(&values).unwrap();
    for (name, readiness) in
        [("log-gateway", "/readyz"), ("log-monitor", "/livez"), ("log-witness", "/readyz")]
    {
        let set = object(&objects, "StatefulSet", name);
        check_pod(set, readiness);
        check_arguments(&folder, set);
        let selector = &object(&objects, "Service", "log")["spec"]["selector"];
        assert_ne!(
            &set["spec"]["selector"]["matchLabels"], selector,
            "the Service of the log is for the log"
        );
    }
    let config = |name: &str, file: &str| {
        let text = object(&objects, "ConfigMap", name)["data"][file].as_str().unwrap();
        folder.write(file, text.replace("/var/lib/tabellion", "state"));
        text.to_owned()
    };
    config("log-gateway", "gateway.toml");
    folder.run(&["gateway", "check", "--offline", "--config", "gateway.toml"]).must_end_with(0);
    config("log-monitor", "monitor.toml");
    folder.run(&["monitor", "once", "--config", "monitor.toml"]).must_end_with(7);
    assert_eq!(config("log-witness", "witness-logs.txt"), logs);
    for name in ["gateway", "monitor", "witness"] {
        let mut empty = log_values(&policy, "postgres", 2);
        empty[name] = json!({ "enabled": true });
        assert!(
            rendered(&empty).unwrap_err().contains(&format!("/{name}/")),
            "{name} needs its configuration"
        );
    }
}

/// Writes the configuration of a log. Returns the folder, and the log's policy.
fn log_files() -> (Folder, String) {
    let folder = Folder::new();
    folder.run(&["init", "log", "--origin", "log.example", "--db", "sqlite:log.db"]).must_end_with(0);
    let policy = String::from_utf8(folder.read("log/policy.toml")).unwrap();
    (folder, policy)
}

/// Returns values of the chart for a log with this policy.
fn log_values(policy: &str, storage: &str, replicas: u32) -> Value {
    json!({
        "image": "example", "origin": "log.example", "iss": "https://log.example", "policy": policy,
        "publicUrl": "https://log.example", "storage": storage, "replicas": replicas,
        "settings": "issuer_rate = 50",
    })
}

fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind && name_of(object) == name);
    found.unwrap_or_else(|| panic!("the chart makes no {kind} {name}"))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The program knows the command and the options of a container.
fn check_arguments(folder: &Folder, set: &Value) {
    let arguments = set["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str().unwrap()).collect();
    folder.run(&[words.as_slice(), &["--help"]].concat()).must_end_with(0);
}

/// Renders the chart with Helm, and validates each object with the schemas of Kubernetes.
fn rendered(values: &Value) -> Result<Vec<Value>, String> {
    let mut command = Command::new(deployment_tool("venv/bin/python"));
    command.arg(repository("tests/python/helm_chart.py")).arg(repository("deploy/helm/tabellion"));
    let output = command.arg(values.to_string()).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

fn check_pod(set: &Value, readiness: &str) {
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    for (probe, path) in
        [("livenessProbe", "/livez"), ("startupProbe", "/livez"), ("readinessProbe", readiness)]
    {
        assert_eq!(container[probe]["httpGet"]["path"], path);
    }
}

fn check_settings(folder: &Folder, map: &Value, storage: &str) {
    let text = map["data"]["tabellion.toml"].as_str().unwrap();
    let here = text
        .replace("/etc/tabellion/", "log/")
        .replace("/var/lib/tabellion-data", "data")
        .replace("/var/lib/tabellion", "state");
    folder.write("tabellion.toml", here);
    folder.write("log/policy.toml", map["data"]["policy.toml"].as_str().unwrap());
    for name in ["state", "data"] {
        fs::create_dir_all(folder.path(name)).unwrap();
    }
    let mut check = folder.command(&["config", "check", "--config", "tabellion.toml"]);
    if storage == "postgres" {
        folder.write("database", "postgres://tabellion@db.example/log?sslmode=verify-full");
        folder.write("pin", "postgres://tabellion@pins.example/pin?sslmode=verify-full");
        check.env("TABELLION_DB_FILE", "database").env("TABELLION_PIN_FILE", "pin");
    }
    run(&mut check);
}

#[test]
fn promtool_accepts_the_alerts_and_each_fires_when_it_should() {
    let folder = repository("deploy/prometheus");
    let promtool = deployment_tool("promtool");
    run(Command::new(&promtool).args(["test", "rules", "alerts_test.yml"]).current_dir(&folder));
    let alerts = yaml(&fs::read_to_string(folder.join("alerts.yml")).unwrap());
    let tests = yaml(&fs::read_to_string(folder.join("alerts_test.yml")).unwrap());
    let rules: Vec<&Value> = alerts["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    let tested: BTreeSet<&str> =
        tests["tests"].as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap()).collect();
    for rule in &rules {
        let name = rule["alert"].as_str().unwrap();
        assert!(tested.contains(name), "{name} has no test");
        let page = rule["annotations"]["runbook"].as_str().unwrap();
        let text = fs::read_to_string(repository(page)).unwrap_or_else(|why| panic!("{page}: {why}"));
        assert!(text.contains(&format!("**{name}**")), "{page} does not explain {name}");
    }
    // The configuration names the alerts as they are mounted.
    let place = Folder::new();
    place.write("prometheus.yml", fs::read(repository("deploy/compose/prometheus.yml")).unwrap());
    place.write("alerts.yml", fs::read(folder.join("alerts.yml")).unwrap());
    run(Command::new(&promtool).args(["check", "config"]).arg(place.path("prometheus.yml")));
}

/// Every expression of the dashboards, as rules: promtool parses them.
#[test]
fn dashboards_have_unique_panels_and_expressions_that_prometheus_parses() {
    let mut rules = String::from("groups:\n  - name: dashboards\n    rules:\n");
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(repository("deploy/grafana")).unwrap() {
        let board: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        assert!(ids.insert(board["uid"].as_str().unwrap().to_owned()), "two dashboards have one uid");
        let panels = board["panels"].as_array().unwrap();
        let numbers: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(numbers.len(), panels.len(), "two panels have one id");
        for target in panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
            let number = rules.lines().count();
            rules += &format!("      - {{ record: 'panel:{number}', expr: {} }}\n", target["expr"]);
        }
    }
    let expected: BTreeSet<String> =
        DASHBOARDS.iter().map(|service| format!("tabellion-{service}")).collect();
    assert_eq!(ids, expected);
    let folder = Folder::new();
    folder.write("rules.yml", rules);
    run(Command::new(deployment_tool("promtool")).args(["check", "rules"]).arg(folder.path("rules.yml")));
}

#[test]
fn grafanas_types_accept_the_dashboards_and_refuse_what_grafana_would_ignore() {
    let boards = DASHBOARDS.iter().map(|name| repository(&format!("deploy/grafana/tabellion-{name}.json")));
    let boards: Vec<_> = boards.collect();
    assert_eq!(dashboard_faults(&boards), Vec::<String>::new());

    let folder = Folder::new();
    let board: Value = serde_json::from_slice(&fs::read(&boards[0]).unwrap()).unwrap();
    let place = board["panels"].as_array().unwrap().iter().position(|panel| panel["targets"].is_array());
    let panel = format!("/panels/{}", place.unwrap());
    for (at, value, fault) in [
        ("/refresh", json!(30), "/refresh: 30 is no"),
        ("/panles", json!([]), "/panles: no such member"),
        ("PANEL/type", json!("timeserie"), "no panel has the type 'timeserie'"),
        ("PANEL/gridPos/w", json!("12"), "/w: '12' is no"),
        ("PANEL/targets/0/legendformat", json!("a"), "/legendformat: no such member"),
        ("PANEL/fieldConfig/defaults/unti", json!("ops"), "/unti: no such member"),
        ("PANEL/options", json!({ "legend": { "displayMode": "lists" } }), "'lists' is no"),
    ] {
        let at = at.replace("PANEL", &panel);
        let (parent, name) = at.rsplit_once('/').unwrap();
        let mut changed = board.clone();
        changed.pointer_mut(parent).unwrap()[name] = value;
        folder.write("changed.json", changed.to_string());
        let faults = dashboard_faults(&[folder.path("changed.json")]);
        assert!(faults.len() == 1 && faults[0].contains(fault), "{at}: {faults:?}");
    }
}

/// Returns what the types of Grafana's schemas say against dashboards.
fn dashboard_faults(files: &[PathBuf]) -> Vec<String> {
    let mut command = Command::new(deployment_tool("venv/bin/python"));
    let printed = run(command.arg(repository("tests/python/grafana_dashboard.py")).args(files));
    serde_json::from_str(&printed).unwrap()
}

/// Reads YAML with Python.
fn yaml(text: &str) -> Value {
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(sys.argv[1]), sys.stdout)";
    serde_json::from_str(&run(Command::new(deployment_tool("venv/bin/python")).args(["-c", script, text])))
        .unwrap()
}
