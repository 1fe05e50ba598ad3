//! A verification service in a folder with a dev log, as an operator tries it out.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::Folder;
use crate::http::{Answer, Connection, Silence};

/// A running `tabellion vrf serve --dev` process, killed on drop.
pub struct VerificationProcess {
    child: Child,
    serving: Value,
}

impl VerificationProcess {
    /// Starts a process, and waits until it serves.
    #[track_caller]
    pub fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a process that aborts at the first visit of a crash point.
    #[track_caller]
    pub fn start_until(folder: &Folder, point: &str) -> Self {
        Self::start_with(folder, &[("TABELLION_CRASH_AT", point)])
    }

    /// Starts a process with this configuration file in the folder, and waits until it serves.
    #[track_caller]
    pub fn start_configured(folder: &Folder, file: &str) -> Self {
        Self::run(folder, folder.command(&["vrf", "serve", "--json", "--config", file]))
    }

    /// Starts a process with these environment variables.
    #[track_caller]
    pub fn start_with(folder: &Folder, variables: &[(&str, &str)]) -> Self {
        let mut command = folder.command(&["vrf", "serve", "--dev", "--json"]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied());
        Self::run(folder, command)
    }

    #[track_caller]
    fn run(folder: &Folder, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let stderr = folder.path("verification.log");
        command.stderr(File::create(&stderr).expect("our own folder"));
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        BufReader::new(out).read_line(&mut line).expect("a pipe");
        if line.is_empty() {
            let said = std::fs::read_to_string(&stderr).unwrap_or_default();
            panic!("no service: {:?} {said}", child.wait());
        }
        let serving = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        Self { child, serving }
    }

    /// Returns the verifier's did:key.
    pub fn issuer(&self) -> &str {
        self.serving["issuer"].as_str().expect("an issuer")
    }

    /// Returns a new connection to the admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(self.serving["admin"].as_str().expect("an address"))
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> String {
        String::from_utf8(self.admin().get("/metrics").body).expect("text")
    }

    /// Returns the address for clients.
    pub fn url(&self) -> &str {
        self.serving["url"].as_str().expect("a URL")
    }

    /// Sends a request. The process may end before it answers.
    pub fn verify(&self, request: &Value) -> Result<Answer, Silence> {
        self.post(request, &[("Content-Type", "application/json")])
    }

    /// Sends a request with a client's token.
    pub fn verify_as(&self, token: &str, request: &Value) -> Result<Answer, Silence> {
        let bearer = format!("Bearer {token}");
        self.post(request, &[("Content-Type", "application/json"), ("Authorization", &bearer)])
    }

    /// Sends a request with more headers.
    pub fn post(&self, request: &Value, headers: &[(&str, &str)]) -> Result<Answer, Silence> {
        Connection::to(self.url()).try_send("POST", "/verify", headers, request.to_string().as_bytes())
    }

    /// Sends a request until the log's receipt is in the answer.
    #[track_caller]
    pub fn registered(&self, request: &Value) -> Value {
        loop {
            let answer = self.verify(request).unwrap_or_else(|silence| panic!("{silence:?}"));
            assert!(matches!(answer.status, 200 | 202), "{}", answer.json());
            let answer = answer.json();
            assert!(answer.get("refused").is_none(), "{answer}");
            if answer.get("scitt_receipt").is_some() {
                return answer;
            }
        }
    }

    /// Waits until the process has ended by itself.
    pub fn wait(mut self) {
        self.child.wait().expect("our own child");
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub fn stop(mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        self.child.wait().expect("our own child");
    }

    /// Sends SIGKILL, while other threads wait for answers.
    pub fn kill_now(&self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::KILL);
    }

    /// Ends the process at once, as `kill -9` does.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for VerificationProcess {
    fn drop(&mut self) {
        self.end();
    }
}
