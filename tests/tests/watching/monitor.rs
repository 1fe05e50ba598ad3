//! The monitor as a program: what it says, how it ends, what it leaves for others to check, and whom it tells.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use black_box::cli::{Dev, Ended, Folder};
use black_box::{Log, LyingLog, MonitorProcess};
use data_encoding::BASE64;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;

/// How long anything that must happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the configuration of a monitor that watches this log.
fn watching(log: &LyingLog, more: &str) -> Folder {
    let folder = Folder::new();
    configure(&folder, log, more);
    folder
}

fn configure(folder: &Folder, log: &LyingLog, more: &str) {
    let (url, vkey, witness) = (log.url(), log.vkey(), log.witness_vkey());
    folder.write(
        "monitor.toml",
        format!(
            "state_dir = \"state\"\nevery = \"1s\"\n{more}\n[[log]]\nname = \"theirs\"\nurl = \"{url}\"\n\
             vkey = \"{vkey}\"\nwitnesses = [\"{witness}\"]\n"
        ),
    );
}

/// The files of evidence, as they lie there.
fn evidence(folder: &Folder) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(folder.path("state/evidence")) else { return Vec::new() };
    found.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn an_honest_log_is_verified_and_what_was_not_checked_is_said() {
    let log = LyingLog::of(5);
    let folder = watching(&log, "");
    let first = folder.run(&["monitor", "once"]);
    let text = first.must_end_with(0).text();
    assert!(text.contains("ok    signature"), "{text}");
    assert!(text.contains("--    consistency"), "there is nothing to compare with yet: {text}");
    log.grow(300);
    let second = folder.run(&["monitor", "once"]);
    let text = second.must_end_with(0).text();
    assert!(text.contains("ok    consistency") && text.contains("ok    freshness"), "{text}");
    assert!(text.contains("--    entries       not checked"), "{text}");
    assert!(evidence(&folder).is_empty());
    let status = folder.run(&["monitor", "status", "--json"]).must_end_with(0).json();
    assert_eq!(status["logs"][0]["verified_size"], 305);
    assert_eq!(folder.run(&["monitor", "alerts"]).must_end_with(0).text(), "no active alarms\n");
}

#[test]
fn a_fork_ends_with_8_and_leaves_evidence_that_anybody_can_check_with_the_monitor_and_the_log_gone() {
    let log = LyingLog::of(300);
    let folder = watching(&log, "");
    folder.run(&["monitor", "once"]).must_end_with(0);
    log.fork_at(7);
    log.grow(3);
    let ended = folder.run(&["monitor", "once"]);
    assert!(ended.must_end_with(8).stderr.contains("SECURITY ERROR"), "{ended}");
    let vkey = log.vkey();
    drop(log);
    let [file] = &evidence(&folder)[..] else { panic!("{:?}", evidence(&folder)) };

    let third_party = Folder::new();
    fs::copy(file, third_party.path("evidence.json")).unwrap();
    let checked = third_party.run(&["checkpoint", "diff", "evidence.json", "--key", &vkey]);
    assert!(checked.must_end_with(8).stderr.contains("two different histories"), "{checked}");
    assert!(checked.text().contains("FAIL  consistency"), "{checked}");
    let json = third_party.run(&["checkpoint", "diff", "evidence.json", "--key", &vkey, "--json"]);
    assert_eq!(json.must_end_with(8).json()["verdict"], "contradiction");
    assert_eq!(json.error(), "split-view");
    let unkeyed = third_party.run(&["checkpoint", "diff", "evidence.json"]);
    assert!(unkeyed.must_end_with(4).text().contains("unknown signer"), "{unkeyed}");
    let stranger = LyingLog::of(1).witness_vkey();
    third_party.run(&["checkpoint", "diff", "evidence.json", "--key", &stranger]).must_end_with(2);

    // One byte of the evidence, anywhere in what is signed, and it accuses nobody.
    let text = String::from_utf8(third_party.read("evidence.json")).unwrap();
    let larger = text.replace("\\n303\\n", "\\n304\\n");
    assert_ne!(text, larger);
    third_party.write("changed.json", larger);
    third_party.run(&["checkpoint", "diff", "changed.json", "--key", &vkey]).must_end_with(3);
}

#[test]
fn a_fork_that_cannot_be_kept_ends_with_8_all_the_same() {
    let log = LyingLog::of(300);
    let folder = watching(&log, "");
    folder.run(&["monitor", "once"]).must_end_with(0);
    folder.write("state/evidence", "a file where a folder should be");
    log.fork_at(7);
    log.grow(3);
    let ended = folder.run(&["monitor", "once"]);
    assert!(ended.must_end_with(8).text().contains("FAIL"), "{ended}");
    assert!(ended.stderr.contains("could not be stored"), "{ended}");
}

#[test]
fn two_notes_are_compared_offline_with_a_proof_or_with_the_logs_own_tiles() {
    let log = LyingLog::of(64);
    let folder = Folder::new();
    folder.write("64.note", fetch(&log.url(), "checkpoint"));
    log.grow(40);
    folder.write("104.note", fetch(&log.url(), "checkpoint"));
    let (vkey, url) = (log.vkey(), log.url());
    let diff = |more: &[&str]| folder.run(&[&["checkpoint", "diff"], more].concat());
    let key = ["--key", &vkey];

    diff(&["64.note", "64.note", key[0], key[1]]).must_end_with(0);
    diff(&["64.note", "104.note", key[0], key[1]]).must_end_with(4);
    let joined = diff(&["104.note", "64.note", key[0], key[1], "--url", &url]);
    assert!(joined.must_end_with(0).text().contains("consistent"), "{joined}");
    let unsigned = diff(&["64.note", "104.note", "--url", &url]);
    assert!(unsigned.must_end_with(4).text().contains("signatures were not checked"), "{unsigned}");

    // Another tree of 104 leaves, and one of 110 that does not begin with the 64 that were shown.
    log.fork_at(103);
    folder.write("other.note", fetch(&log.url(), "checkpoint"));
    let split = diff(&["104.note", "other.note", key[0], key[1], "--json"]);
    assert_eq!(split.must_end_with(8).json()["verdict"], "contradiction");
    log.fork_at(5);
    log.grow(6);
    folder.write("110.note", fetch(&log.url(), "checkpoint"));
    diff(&["64.note", "110.note", key[0], key[1], "--url", &url]).must_end_with(8);

    folder.write("no.proof", "not a hash\n");
    let refused = diff(&["64.note", "104.note", key[0], key[1], "--proof", "no.proof", "--json"]);
    assert_eq!(refused.must_end_with(4).error(), "proof-unusable");
    folder.write("wrong.proof", format!("{}\n", "ab".repeat(32)));
    diff(&["64.note", "104.note", key[0], key[1], "--proof", "wrong.proof"]).must_end_with(3);
    diff(&["64.note"]).must_end_with(2);
    folder.write("nothing.json", "{}");
    assert_eq!(diff(&["nothing.json", "--json"]).must_end_with(4).error(), "evidence-unusable");
}

#[test]
fn a_fork_stands_until_somebody_has_looked_and_what_passes_is_over_by_itself() {
    let log = LyingLog::of(9);
    let folder = watching(&log, "");
    folder.run(&["monitor", "once"]).must_end_with(0);
    log.fork_at(8);
    folder.run(&["monitor", "once"]).must_end_with(8);
    // The log goes back to the tree that everybody knows, as if nothing had been.
    let honest = LyingLog::of(9);
    configure(&folder, &honest, "");
    let later = folder.run(&["monitor", "once"]);
    assert!(later.must_end_with(8).text().contains("ALARM"), "{later}");
    let alarms = folder.run(&["monitor", "alerts", "--json"]).must_end_with(8).json();
    let id = alarms["alarms"][0]["id"].as_str().unwrap().to_owned();
    assert!(alarms["alarms"][0]["evidence_file"].is_string(), "{alarms}");

    folder.run(&["monitor", "reset", &id]).must_end_with(2);
    folder.run(&["monitor", "reset", "000000000000", "--because", "x"]).must_end_with(5);
    folder.run(&["monitor", "reset", &id, "--because", "the operator was told"]).must_end_with(0);
    folder.run(&["monitor", "once"]).must_end_with(0);
    let all = folder.run(&["monitor", "alerts", "--all", "--json"]).must_end_with(0).json();
    assert_eq!(all["alarms"][0]["state"], "reset");
    assert_eq!(all["alarms"][0]["because"], "the operator was told");
    assert_eq!(evidence(&folder).len(), 1, "the evidence stays");

    honest.freeze(7200);
    folder.run(&["monitor", "once"]).must_end_with(9);
    honest.recover();
    folder.run(&["monitor", "once"]).must_end_with(0);
    assert!(evidence(&folder).len() > 1, "of staleness there is evidence too");
}

#[test]
fn without_a_log_there_is_nothing_to_watch_and_a_silent_one_ends_with_7() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["monitor", "once", "--json"]).must_end_with(4).error(), "nothing-watched");
    let log = LyingLog::of(3);
    let (url, vkey) = (log.url(), log.vkey());
    let named = ["monitor", "once", "--url", &url, "--key", &vkey];
    folder.run(&named).must_end_with(0);
    assert_eq!(folder.run(&["monitor", "status", "--json"]).json()["logs"][0]["verified_size"], 3);
    log.answer(500);
    folder.run(&named).must_end_with(7);
    drop(log);
    folder.run(&named).must_end_with(7);
    folder.write("monitor.toml", "state_dir = \"s\"\nevry = \"1s\"\n");
    assert_eq!(folder.run(&["monitor", "once", "--json"]).must_end_with(2).error(), "monitor-config");
}

#[test]
fn a_service_of_ours_is_watched_out_of_the_box() {
    let dev = Dev::start();
    let first = dev.folder.run(&["monitor", "once"]);
    assert!(first.must_end_with(0).text().contains("ok    signature"), "{first}");
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    let second = dev.folder.run(&["monitor", "once"]);
    assert!(second.must_end_with(0).text().contains("ok    consistency"), "{second}");
}

#[test]
fn the_example_in_deploy_is_a_configuration() {
    let example = black_box::cli::repository("deploy/monitor.toml").display().to_string();
    let looked = Folder::new().run(&["monitor", "status", "--json", "--config", &example]);
    assert_eq!(looked.must_end_with(4).error(), "nothing-watched", "it reads; nothing was looked at yet");
    let unit = fs::read_to_string(black_box::cli::repository("deploy/tabellion-monitor.service")).unwrap();
    assert!(unit.contains("tabellion monitor run --config /etc/tabellion/monitor.toml"));
}

#[test]
fn a_running_monitor_tells_its_rounds_and_alarms_and_stops_when_told() {
    let log = LyingLog::of(20);
    let folder = watching(&log, "listen = \"127.0.0.1:0\"");
    let mut monitor = MonitorProcess::start(&folder);
    let round = monitor.next("round");
    assert_eq!(round["round"]["verified"], 20);
    let metrics = monitor.metrics();
    assert!(metrics.contains("tabellion_monitor_verified_size_leaves{log=\"theirs\"} 20"), "{metrics}");
    assert!(metrics.contains("tabellion_monitor_inconsistency_total{log=\"theirs\"} 0"), "{metrics}");
    // Beside it, others read; another monitor may not.
    folder.run(&["monitor", "status"]).must_end_with(0);
    assert_eq!(folder.run(&["monitor", "once", "--json"]).must_end_with(1).error(), "monitor-in-use");

    log.fork_at(3);
    log.grow(1);
    let raised = monitor.next("raised");
    assert_eq!(raised["alarm"]["kind"], "fork");
    let file = raised["alarm"]["evidence_file"].as_str().unwrap();
    assert!(folder.has(&format!("state/{file}")), "the evidence is there when the alarm is told");
    let metrics = monitor.metrics();
    assert!(metrics.contains("tabellion_monitor_inconsistency_total{log=\"theirs\"} 1"), "{metrics}");
    assert!(metrics.contains("tabellion_monitor_alarms{kind=\"fork\",log=\"theirs\"} 1"), "{metrics}");
    assert_eq!(monitor.stop(), Some(0));

    // What stood before still does, and is not news.
    let mut monitor = MonitorProcess::start(&folder);
    monitor.next("round");
    monitor.next("round");
    assert!(monitor.events().iter().all(|event| event["event"] != "raised"), "{:?}", monitor.events());
    let metrics = monitor.metrics();
    assert!(metrics.contains("tabellion_monitor_inconsistency_total{log=\"theirs\"} 1"), "{metrics}");
}

#[test]
fn a_killed_monitor_goes_on_where_it_was() {
    let log = LyingLog::of(20);
    let folder = watching(&log, "");
    for size in [20, 30, 40] {
        let mut monitor = MonitorProcess::start(&folder);
        while monitor.next("round")["round"]["verified"] != size {}
        monitor.kill();
        log.grow(10);
    }
    log.fork_at(0);
    let mut monitor = MonitorProcess::start(&folder);
    assert_eq!(monitor.next("raised")["alarm"]["kind"], "fork");
}

#[test]
fn r48_a_webhook_that_was_refused_arrives_later_signed_by_the_monitors_own_key() {
    let log = LyingLog::of(20);
    let hooks = Hooks::answering(&[500, 503]);
    let hook = format!("[[webhook]]\nurl = \"{}\"\nallow_private = true\n", hooks.url);
    let folder = watching(&log, &hook);
    let mut monitor = MonitorProcess::start(&folder);
    let key = monitor.watching()["webhook_key"].as_str().unwrap().to_owned();
    monitor.next("round");
    log.fork_at(3);
    log.grow(1);
    monitor.next("raised");
    let came: Vec<Hook> = (0..3).map(|_| hooks.next()).collect();
    for hook in &came {
        assert!(hook.is_signed_by(&key), "{hook:?}");
        assert_eq!(hook.header("webhook-id"), came[0].header("webhook-id"));
    }
    let told: Value = serde_json::from_slice(&came[2].body).unwrap();
    assert_eq!(told["type"], "monitor.alarm.raised");
    assert_eq!(told["data"]["alarm"]["kind"], "fork");

    // The message brings the evidence along, as the file has it.
    folder.write("told.json", told["data"]["evidence"].to_string());
    folder.run(&["checkpoint", "diff", "told.json", "--key", &log.vkey()]).must_end_with(8);
    assert_eq!(monitor.stop(), Some(0));
    assert!(fs::read_dir(folder.path("state/webhooks")).unwrap().next().is_none(), "nothing waits any more");
}

#[test]
fn a_webhook_to_a_private_address_is_refused_unless_the_operator_allows_it() {
    let log = LyingLog::of(3);
    for (url, why) in [
        ("https://127.0.0.1/x", "not a public address"),
        ("https://169.254.169.254/latest", "not a public address"),
        ("https://[::1]/x", "not a public address"),
        ("http://hooks.example/x", "use https"),
    ] {
        let folder = watching(&log, &format!("[[webhook]]\nurl = \"{url}\"\n"));
        let refused = folder.run(&["monitor", "once"]);
        assert!(refused.must_end_with(2).stderr.contains(why), "{url}: {refused}");
    }
}

#[test]
fn a_real_service_that_grows_restarts_and_stops_is_accused_of_nothing() {
    let log = Log::sqlite();
    let service = log.serve();
    service.connection().post(log.statement().bytes());
    let vkey = log.tabellion(&["key", "show", "--json"]);
    let vkey: Value = serde_json::from_str(&vkey.stdout).unwrap();
    let vkey = vkey["checkpoint"]["vkey"].as_str().unwrap().to_owned();
    let folder = Folder::new();
    let url = service.url().to_owned();
    let once = |folder: &Folder| folder.run(&["monitor", "once", "--url", &url, "--key", &vkey]);
    let first: Ended = once(&folder);
    first.must_end_with(0);
    for _ in 0..5 {
        service.connection().post(log.statement().bytes());
    }
    let second = once(&folder);
    assert!(second.must_end_with(0).text().contains("ok    consistency"), "{second}");
    service.stop();
    once(&folder).must_end_with(7);
    assert!(folder.run(&["monitor", "alerts"]).must_end_with(0).text().contains("no active alarms"));
}

/// A receiver of webhooks that answers what it is told to, 204 afterwards.
struct Hooks {
    url: String,
    came: Receiver<Hook>,
}

#[derive(Debug)]
struct Hook {
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Hooks {
    fn answering(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, came) = channel();
        let mut answers: Vec<u16> = answers.iter().rev().copied().collect();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(hook) = receive(stream, answers.pop().unwrap_or(204))
                    && sender.send(hook).is_err()
                {
                    return;
                }
            }
        });
        Self { url, came }
    }

    #[track_caller]
    fn next(&self) -> Hook {
        self.came.recv_timeout(PATIENCE).expect("a webhook")
    }
}

impl Hook {
    fn header(&self, name: &str) -> &str {
        let line =
            self.headers.iter().find_map(|line| line.split_once(": ").filter(|(known, _)| *known == name));
        line.unwrap_or_else(|| panic!("{name}: {:?}", self.headers)).1
    }

    /// As any library of Standard Webhooks would check it.
    fn is_signed_by(&self, key: &str) -> bool {
        let key = BASE64.decode(key.strip_prefix("whpk_").unwrap().as_bytes()).unwrap();
        let key = VerifyingKey::from_bytes(key.as_slice().try_into().unwrap()).unwrap();
        let signature = self.header("webhook-signature").strip_prefix("v1a,").unwrap();
        let signature = Signature::from_slice(&BASE64.decode(signature.as_bytes()).unwrap()).unwrap();
        let head = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        key.verify_strict(&[head.as_bytes(), &self.body].concat(), &signature).is_ok()
    }
}

fn receive(mut stream: TcpStream, answer: u16) -> Option<Hook> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => headers.push(line.to_owned()),
        }
    }
    let length = headers.iter().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let head = format!("HTTP/1.1 {answer} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    Some(Hook { headers, body })
}

/// A body over plain HTTP.
fn fetch(url: &str, path: &str) -> String {
    let url = format!("{url}{path}");
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}
