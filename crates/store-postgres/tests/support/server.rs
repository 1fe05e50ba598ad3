//! A server of its own, for settings that belong to a whole server.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A running server, gone when this is dropped.
pub struct Server {
    /// Its URL.
    pub url: String,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts one with these settings (`name=value`).
    pub fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The server may run as another user, who has to get through.
        run(Command::new("chmod").arg("711").arg(folder.path()));
        let mut start = Command::new(tool());
        start.arg("start").arg(cluster(&folder));
        for setting in settings {
            start.args(["-c", setting]);
        }
        Self { url: run(&mut start).trim().to_owned(), folder }
    }

    /// Kills it as a power cut would, and starts it again.
    pub fn crash(&self) {
        for verb in ["crash", "recover"] {
            run(Command::new(tool()).arg(verb).arg(cluster(&self.folder)));
        }
    }

    /// Puts a file into the server's data folder, readable by the server alone.
    pub fn place(&self, name: &str, content: &str) {
        let data = cluster(&self.folder).join("data");
        let file = data.join(name);
        std::fs::write(&file, content).unwrap();
        run(Command::new("chmod").arg("600").arg(&file));
        run(Command::new("chown").arg(format!("--reference={}", data.display())).arg(&file));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(tool()).arg("stop").arg(cluster(&self.folder)).status();
    }
}

fn tool() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/throwaway-postgres")
}

fn cluster(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("cluster")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
