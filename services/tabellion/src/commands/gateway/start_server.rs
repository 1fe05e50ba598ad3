//! `tabellion gateway start-server`: restricts its own process, and replaces itself with an MCP server. Only the
//! gateway calls it, to start a server as a child process.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use gateway::isolation::{self, ChildLimits, Confinement, OwnFiles, User};

use crate::console::{Exit, Failure};

#[derive(Debug, Args)]
pub struct StartServer {
    /// A path that the server can neither read nor change
    #[arg(long, value_name = "PATH")]
    secret: Vec<PathBuf>,
    /// A path that the server cannot change
    #[arg(long, value_name = "PATH")]
    public: Vec<PathBuf>,
    /// A path that it may change
    #[arg(long, value_name = "PATH")]
    writable: Vec<PathBuf>,
    /// The user that it runs as
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    /// The group of that user
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// Bytes of memory of one process
    #[arg(long)]
    memory: u64,
    /// Processes of its user
    #[arg(long)]
    processes: u64,
    /// Open files of one process
    #[arg(long)]
    open_files: u64,
    /// Starts it even without Landlock
    #[arg(long)]
    landlock_optional: bool,
    /// The server, with its arguments
    #[arg(last = true, required = true)]
    server: Vec<OsString>,
}

impl StartServer {
    pub fn run(self) -> Result<(), Failure> {
        let user = self.uid.zip(self.gid);
        let confinement = Confinement {
            own_files: OwnFiles { secret: self.secret, public: self.public },
            writable: self.writable,
            user: user.map(|(uid, gid)| User { name: uid.to_string(), uid, gid, home: None }),
            limits: ChildLimits {
                memory: self.memory,
                processes: self.processes,
                open_files: self.open_files,
            },
            landlock_optional: self.landlock_optional,
        };
        match isolation::enter(&confinement, &self.server) {
            Ok(never) => match never {},
            Err(error) => Err(Failure::new(Exit::Failure, "server-not-started", error.to_string())),
        }
    }
}
