//! Jobs: calls into a program, with their bounds.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One run of a program in a fresh guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program's files by relative path; the guest can read them, and no others of the host.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The call to make.
    pub call: Call,
    /// The bounds of the run.
    pub limits: Limits,
}

/// A call into the files of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Loads `file` and calls one of its functions; the outcome has the returned value as JSON.
    Function {
        /// The language of the file.
        language: Language,
        /// The file that defines the function.
        file: String,
        /// The name of the function.
        function: String,
        /// The arguments: the text of a JSON array.
        arguments: String,
    },
    /// Starts a program with standard input; the outcome has its standard output and exit code.
    Program {
        /// The program, a path in the job's files or a program of the sandbox such as `z3`, and its arguments.
        command: Vec<String>,
        /// The program's standard input.
        stdin: Vec<u8>,
    },
}

/// A programming language that a sandbox may support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// ECMAScript, as QuickJS reads it.
    JavaScript,
    /// Python 3.
    Python,
}

/// The bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Units of work, for engines that count them; a deterministic bound.
    pub fuel: u64,
    /// Memory in bytes.
    pub memory: u64,
    /// Bytes of standard output, standard error and returned value, each.
    pub output: u64,
    /// Processes and threads, for engines that have them.
    pub processes: u32,
    /// Wall time, the last bound: its expiry depends on the machine.
    pub time: Duration,
}
