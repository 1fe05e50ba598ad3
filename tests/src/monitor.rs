//! A monitor as a process that runs continuously.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Folder;
use crate::daemon::Daemon;
use crate::http::Connection;

/// Maximum time for anything that must happen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `tabellion monitor run --json` process with its events, killed on drop.
pub struct MonitorProcess {
    daemon: Daemon,
    watching: Value,
    coming: Receiver<Value>,
    events: Vec<Value>,
}

impl MonitorProcess {
    /// Starts a process with the `monitor.toml` of this folder, and waits until it watches.
    #[track_caller]
    pub fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a process with these environment variables.
    #[track_caller]
    pub fn start_with(folder: &Folder, variables: &[(&str, &str)]) -> Self {
        let mut command: Command = folder.command(&["monitor", "run", "--json"]);
        command.envs(variables.iter().copied());
        let mut daemon = Daemon::spawn(command, folder.path("run.log"));
        let out = daemon.take_stdout();
        let (sender, coming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let watching: Value =
            coming.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("{why}: {}", daemon.said()));
        assert_eq!(watching["event"], "watching");
        Self { daemon, watching, coming, events: Vec::new() }
    }

    /// The announcement of the process.
    pub fn watching(&self) -> &Value {
        &self.watching
    }

    /// Waits for the next event of this kind.
    #[track_caller]
    pub fn next(&mut self, kind: &str) -> Value {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let event = self.coming.recv_timeout(PATIENCE).expect("an event");
            self.events.push(event.clone());
            if event["event"] == kind {
                return event;
            }
        }
        panic!("no {kind}: {:?}", self.events);
    }

    /// Returns the events that were waited for.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    /// Returns a new connection to the listener for health and metrics.
    pub fn admin(&self) -> Connection {
        let url = self.watching["metrics"].as_str().expect("`listen` is set");
        Connection::to(url.trim_end_matches("/metrics"))
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> String {
        String::from_utf8(self.admin().get("/metrics").body).expect("text")
    }

    /// Sends `SIGTERM`, and returns the exit code.
    #[track_caller]
    pub fn stop(&mut self) -> Option<i32> {
        self.daemon.end().code()
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(&mut self) {
        self.daemon.kill_here();
    }
}
