//! Following a log: whoever stops reading and comes back has lost nothing and reads nothing twice (R48, I15).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use black_box::{
    Load, Log, OwnedChild, Recorder, Service, on_both_databases, resolve_what_was_left_open, until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reader over a plain socket, as `curl -N` would be.
struct Reader {
    lines: BufReader<TcpStream>,
    last: Option<String>,
}

impl Reader {
    fn of(service: &Service, last: Option<&str>) -> Self {
        let connection = service.connection().patient_for(PATIENCE);
        let mut socket = connection.connect().unwrap();
        let last = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
        let asked = "/v1/entries/stream?from=0";
        write!(socket, "GET {asked} HTTP/1.1\r\nHost: {}\r\n{last}\r\n", connection.address()).unwrap();
        let mut lines = BufReader::new(socket);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        Self { lines, last: None }
    }

    /// The next entry; `None` once the stream has ended. Chunk sizes stand on lines of their own, and events are made of
    /// whole lines, so a reader need not take chunks apart.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(id) = line.strip_prefix("id: ") {
                self.last = Some(id.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                let entry: Value = serde_json::from_str(data).unwrap();
                return (entry["index"] != Value::Null).then_some(entry);
            }
        }
    }
}

/// The IDs of all entries, in their order, as the list has them.
fn listed(service: &Service) -> Vec<String> {
    let mut connection = service.connection();
    let (mut all, mut query) = (Vec::new(), "limit=1000".to_owned());
    loop {
        let page = connection.get(&format!("/v1/entries?{query}")).json();
        let entries = page["entries"].as_array().unwrap();
        let Some(last) = entries.last() else { return all };
        query = format!("limit=1000&after={}", last["index"]);
        all.extend(entries.iter().map(|entry| entry["entry_id"].as_str().unwrap().to_owned()));
    }
}

#[track_caller]
fn must_be(told: &[Value], listed: &[String]) {
    for (place, entry) in told.iter().enumerate() {
        assert_eq!(entry["index"], place, "in the order of the leaves, nothing twice");
        assert_eq!(entry["entry_id"], listed[place].as_str());
    }
    assert_eq!(told.len(), listed.len(), "nothing is lost");
}

on_both_databases! {
    fn r48_a_reader_who_stops_and_comes_back_loses_nothing_and_keeps_the_order(log: Log) {
        let service = log.serve();
        let recorder = Recorder::new();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let mut told = Vec::new();
        load.on(&service, || {
            let mut last = None;
            for round in 0..6 {
                let mut reader = Reader::of(&service, last.as_deref());
                for _ in 0..40 {
                    told.push(reader.next().expect("the log grows"));
                }
                last = reader.last.clone();
                drop(reader);
                // He is away while the log goes on.
                thread::sleep(Duration::from_millis(50 * round));
            }
        });
        resolve_what_was_left_open(&recorder, &service);
        let all = listed(&service);
        let mut reader = Reader::of(&service, told.last().map(|entry| entry["index"].to_string()).as_deref());
        while told.len() < all.len() {
            told.push(reader.next().expect("the rest"));
        }
        must_be(&told, &all);
        service.stop();
    }

    fn i15_tail_goes_on_by_itself_over_restarts_and_tells_every_entry_once(log: Log) {
        // The same address again after a restart, as a service has it.
        log.configure(&format!("listen = \"{}\"", black_box::free_address()));
        let service = log.serve();
        let tail = Tail::start(&log, service.url(), &["--from-start"]);
        let recorder = Recorder::new();
        let load = Load { log: &log, recorder: &recorder, writers: 2 };
        load.on(&service, || tail.wait_for(30));
        service.kill();
        let service = log.serve();
        load.on(&service, || tail.wait_for(80));
        service.stop();
        let service = log.serve();
        resolve_what_was_left_open(&recorder, &service);
        let all = listed(&service);
        tail.wait_for(all.len());
        must_be(&tail.stop(), &all);
        service.stop();
    }

    fn a_service_with_readers_stops_in_time_and_tells_them(log: Log) {
        let service = log.serve();
        let mut reader = Reader::of(&service, None);
        assert_eq!(reader.next().unwrap()["index"], 0);
        let begun = Instant::now();
        service.stop();
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let mut rest = String::new();
        let _ = reader.lines.read_to_string(&mut rest);
        assert!(rest.contains("event: end") && rest.contains("\"reason\":\"stopping\""), "{rest}");
    }
}

#[test]
fn a_process_that_follows_tells_what_another_sequences() {
    let log = Log::postgres();
    let (first, second) = (log.serve(), log.serve());
    let mut reader = Reader::of(&second, None);
    let mut connection = first.connection();
    for _ in 0..20 {
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
    }
    let told: Vec<Value> = std::iter::from_fn(|| reader.next()).take(21).collect();
    must_be(&told, &listed(&first));
    // The one that sequences goes; its reader's next entries come from whoever does now.
    first.kill();
    let mut connection = second.connection();
    until(PATIENCE, || "nobody takes over", || connection.post(log.statement().bytes()).status == 201);
    assert_eq!(reader.next().unwrap()["index"], 21);
    second.stop();
}

#[test]
fn tail_ends_after_so_many_begins_where_it_is_told_to_and_refuses_what_is_not_there() {
    let log = Log::sqlite();
    let service = log.serve();
    let mut connection = service.connection();
    for _ in 0..5 {
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
    }
    let tail = |flags: &[&str]| {
        log.tabellion(&[&["entry", "tail", "--json", "--url", service.url()], flags].concat())
    };
    let ran = tail(&["--after", "1", "--count", "3"]);
    let told: Vec<Value> =
        ran.must_succeed().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let indices: Vec<u64> = told.iter().map(|entry| entry["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [2, 3, 4]);
    let ran = tail(&["--from-start", "--count", "1", "--subject", "thing-3"]);
    assert_eq!(ran.must_succeed().json()["sub"], "thing-3");
    let ran = tail(&["--after", "17"]);
    assert_eq!(ran.code, Some(6), "{ran}");
    assert!(ran.stderr.contains("stream-ahead"), "{ran}");
    let ran = log.tabellion(&["entry", "tail", "--url", "http://127.0.0.1:9"]);
    assert_eq!(ran.code, Some(7), "{ran}");
    service.stop();
}

/// `tabellion entry tail --json`, read as it prints.
struct Tail {
    child: OwnedChild,
    told: std::sync::Arc<std::sync::Mutex<Vec<Value>>>,
}

impl Tail {
    fn start(log: &Log, url: &str, flags: &[&str]) -> Self {
        let mut command: Command = log.command();
        command.args(["entry", "tail", "--json", "--url", url]).args(flags);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let told: std::sync::Arc<std::sync::Mutex<Vec<Value>>> = Default::default();
        let kept = told.clone();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child: OwnedChild(child), told }
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        until(
            PATIENCE,
            || format!("{} of {count}", self.told.lock().unwrap().len()),
            || self.told.lock().unwrap().len() >= count,
        );
    }

    fn stop(mut self) -> Vec<Value> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        self.told.lock().unwrap().clone()
    }
}
