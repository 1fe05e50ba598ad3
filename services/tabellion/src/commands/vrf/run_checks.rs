//! `tabellion vrf run-checks`: the runner of checks. Only `vrf check`, `vrf recheck` and the verification service start
//! it, as a child process.

use std::io;

use check_runner::{end_with_signer, restrict, serve};
use sandbox::Sandboxes;

use crate::console::{Exit, Failure};

pub fn run() -> Result<(), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(Exit::Failure, "runner-failed", format!("the runner of checks ended: {error}"))
    };
    restrict().map_err(|error| failed(&error))?;
    end_with_signer().map_err(|error| failed(&error))?;
    let sandboxes = Sandboxes::of_this_machine();
    serve(&sandboxes, io::stdin().lock(), io::stdout().lock()).map_err(|error| failed(&error))
}
