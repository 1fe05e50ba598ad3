//! A wrong wall clock, under an unmodified program, by a preloaded library (`wrong-clock/shim.c`).

use std::process::Command;

use tempfile::TempDir;

/// Source file of the preloaded library.
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/wrong-clock/shim.c");

/// The compiled library.
pub struct WrongClock {
    folder: TempDir,
}

impl WrongClock {
    /// Compiles the library.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tabellion-clock.").tempdir().expect("a folder");
        let library = folder.path().join("shim.so");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .args([SHIM, "-ldl"])
            .output();
        let compiled = compiled.expect("a C compiler: install one (Debian: gcc libc6-dev)");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Self { folder }
    }

    /// Returns the environment variables for a program whose clock is to be `seconds` ahead.
    pub fn ahead(&self, seconds: u64) -> Vec<(&'static str, String)> {
        let library = self.folder.path().join("shim.so").display().to_string();
        vec![("LD_PRELOAD", library), ("TABELLION_TEST_CLOCK_AHEAD", seconds.to_string())]
    }
}

impl Default for WrongClock {
    fn default() -> Self {
        Self::new()
    }
}
