//! A registry server in a folder with `registry.json` and `deltas.json`, which `operator.pem` has signed.

use std::ops::Deref;

use crate::cli::Folder;
use crate::daemon::Daemon;
use crate::http::Connection;

/// A running `tabellion registry serve` process, killed on drop.
pub struct RegistryProcess {
    daemon: Daemon,
}

impl RegistryProcess {
    /// Makes an empty registry and an empty list of deltas in the folder, and serves them.
    #[track_caller]
    pub fn of_a_new_registry(folder: &Folder) -> Self {
        folder.run(&["issuer", "new", "-o", "operator.pem", "--alg", "EdDSA"]).must_end_with(0);
        let registry = ["registry", "init", "registry.json", "--id", "acme", "--key", "operator.pem"];
        folder.run(&registry).must_end_with(0);
        folder.write("deltas.json", "[]");
        Self::start(folder)
    }

    /// Starts a process, and waits until it serves.
    #[track_caller]
    pub fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a process with further arguments.
    #[track_caller]
    pub fn start_with(folder: &Folder, further: &[&str]) -> Self {
        let mut command = folder.command(&["registry", "serve", "registry.json", "--json"]);
        command.args(["--registry-key", "operator.pem", "--deltas", "deltas.json"]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]).args(further);
        Self { daemon: Daemon::serve(command, folder.path("registry.log")) }
    }

    /// Returns a new connection to the listener for gateways.
    pub fn connection(&self) -> Connection {
        Connection::to(self.url())
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(self) {
        self.daemon.stop();
    }
}

impl Deref for RegistryProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
