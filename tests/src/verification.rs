//! A verification service in a folder with a dev log, as an operator tries it out.

use std::fs;
use std::ops::Deref;
use std::process::Command;

use serde_json::Value;

use crate::cli::Folder;
use crate::daemon::Daemon;
use crate::http::{Answer, Connection, Silence};
use crate::log::command_through;
use crate::storage_faults::SmallDisk;

/// The arguments of a service that is tried out.
const SERVE_DEV: [&str; 8] =
    ["vrf", "serve", "--dev", "--json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
/// The file with the log output of a service, in its folder.
const LOG_FILE: &str = "verification.log";
/// The state folder of such a service.
const DEV_STATE: &str = "tabellion-dev/verification";

/// A running `tabellion vrf serve --dev` process, killed on drop.
pub struct VerificationProcess {
    daemon: Daemon,
}

impl VerificationProcess {
    /// Starts a process, and waits until it serves.
    #[track_caller]
    pub fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a process that aborts at the first visit of a crash point; `None` if it visited the point before it served, with
    /// a statement that an earlier process had stored and not sent.
    #[track_caller]
    pub fn start_until(folder: &Folder, point: &str) -> Option<Self> {
        let mut command = folder.command(&SERVE_DEV);
        command.env("TABELLION_CRASH_AT", point);
        match Daemon::start(command, folder.path(LOG_FILE)) {
            Ok(daemon) => Some(Self { daemon }),
            Err(ran) if ran.code.is_none() => None,
            Err(ran) => panic!("the service did not start: {ran}"),
        }
    }

    /// Starts a process with this configuration file in the folder, and waits until it serves.
    #[track_caller]
    pub fn start_configured(folder: &Folder, file: &str) -> Self {
        Self::run(folder, folder.command(&["vrf", "serve", "--json", "--config", file]))
    }

    /// Starts a process with these environment variables.
    #[track_caller]
    pub fn start_with(folder: &Folder, variables: &[(&str, &str)]) -> Self {
        let mut command = folder.command(&SERVE_DEV);
        command.envs(variables.iter().copied());
        Self::run(folder, command)
    }

    /// Starts a process with its state on a tmpfs of `kb` kB that only this process sees: [`VerificationProcess::disk`].
    #[track_caller]
    pub fn start_on_a_small_disk(folder: &Folder, kb: u64) -> Self {
        fs::create_dir_all(folder.path(DEV_STATE)).expect("our own folder");
        let mount = format!("mount -t tmpfs -o size={kb}k none {DEV_STATE} && exec \"$@\"");
        let alone = ["--user", "--map-root-user", "--mount", "sh", "-c", &mount, "sh"];
        let mut command = command_through(&folder.path(""), "unshare", &alone);
        command.args(SERVE_DEV);
        Self::run(folder, command)
    }

    /// Returns the tmpfs that the process was started with.
    pub fn disk(&self, folder: &Folder) -> SmallDisk {
        SmallDisk::of(self.sees(&folder.path(DEV_STATE)))
    }

    #[track_caller]
    fn run(folder: &Folder, command: Command) -> Self {
        Self { daemon: Daemon::serve(command, folder.path(LOG_FILE)) }
    }

    /// Returns the verifier's did:key.
    pub fn issuer(&self) -> &str {
        self.announced("issuer")
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
    #[track_caller]
    pub fn wait(mut self) {
        self.daemon.wait();
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(mut self) {
        self.daemon.kill_here();
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(self) {
        self.daemon.stop();
    }
}

impl Deref for VerificationProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
