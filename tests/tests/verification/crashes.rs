//! Crashes of the service: no chain forks, and no request has two receipts.

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use black_box::cli::Dev;
use black_box::{VerificationProcess, until};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::{expect_whole, register_all, request};

/// The points between signing, storing, sending and answering.
const POINTS: [&str; 3] = ["receipt-signed", "receipt-stored", "log-answered"];

#[test]
fn a_crash_at_any_point_of_a_receipt_never_forks_its_chain() {
    let dev = Dev::start();
    for (number, point) in POINTS.iter().cycle().take(9).enumerate() {
        if let Some(service) = VerificationProcess::start_until(&dev.folder, point) {
            // The process may have answered before it sent the statement.
            let _ = service.verify(&request(number));
            service.wait();
        }
    }
    let service = VerificationProcess::start(&dev.folder);
    register_all(&service, POINTS.len() * 3);
    expect_whole(&dev.folder, service.issuer(), POINTS.len() * 3);
}

#[test]
fn kill_9_under_load_never_forks_a_chain() {
    const REQUESTS: usize = 24;
    let dev = Dev::start();
    for round in 0..4 {
        let service = VerificationProcess::start(&dev.folder);
        thread::scope(|scope| {
            for client in 0..3 {
                let service = &service;
                scope.spawn(move || {
                    for number in (client..REQUESTS).step_by(3).take(2 * (round + 1)) {
                        let _ = service.verify(&request(number));
                    }
                });
            }
            // The first answer of this round: the other clients are in the middle of theirs.
            let _ = service.verify(&request(6 * round));
            service.signal(Signal::KILL);
        });
    }
    let service = VerificationProcess::start(&dev.folder);
    register_all(&service, REQUESTS);
    expect_whole(&dev.folder, service.issuer(), REQUESTS);
}

/// How long the start and the end of work may take on a busy machine: less than [`sleeping`] takes.
const PATIENCE: Duration = Duration::from_secs(40);

/// A request whose work sleeps for a minute.
fn sleeping() -> Value {
    json!({
        "tier": 0,
        "task": { "task_id": "sleeping", "task_type": "code_generation" },
        "artifact": { "language": "python", "content": "import time\ndef main():\n    time.sleep(600)\n" },
        "tests": [{ "name": "ends", "expected": 1 }],
        "limits": { "time_ms": 60_000 },
    })
}

/// A process, as `/proc` shows it.
struct RunningProcess {
    id: i32,
    parent: i32,
    command: String,
}

/// Returns a process; `None` if it has ended.
fn running(folder: &Path) -> Option<RunningProcess> {
    let id = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let mut rest = stat.rsplit_once(") ")?.1.split(' ');
    let is_running = !matches!(rest.next()?, "Z" | "X");
    let parent = rest.next()?.parse().ok()?;
    let command = fs::read_to_string(folder.join("cmdline")).ok()?;
    is_running.then_some(RunningProcess { id, parent, command })
}

/// Returns the processes that a process has started, and those that they have started.
fn descendants(of: Pid) -> Vec<RunningProcess> {
    let folders = fs::read_dir("/proc").unwrap();
    let mut others: Vec<RunningProcess> =
        folders.filter_map(|folder| running(&folder.ok()?.path())).collect();
    let mut parents = vec![of.as_raw_nonzero().get()];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        let children = others.extract_if(.., |other| other.parent == parent);
        found.extend(children.inspect(|child| parents.push(child.id)));
    }
    found
}

#[test]
fn work_ends_with_the_service_whether_it_is_killed_or_stopped() {
    let dev = Dev::start();
    for signal in [Signal::KILL, Signal::TERM] {
        let service = VerificationProcess::start(&dev.folder);
        let mut processes = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = service.verify(&sleeping());
            });
            until(
                PATIENCE,
                || "the work did not start",
                || {
                    processes = descendants(service.pid());
                    processes.iter().any(|process| process.command.starts_with("/usr/bin/python3\0"))
                },
            );
            service.signal(signal);
        });
        service.wait();
        let still_run = || {
            let folders = processes.iter().map(|process| format!("/proc/{}", process.id));
            folders.filter(|folder| running(Path::new(folder)).is_some()).count()
        };
        until(PATIENCE, || format!("processes that still run: {}", still_run()), || still_run() == 0);
    }
}
