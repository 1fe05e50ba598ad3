//! The program: one request on standard input, its answer on standard output.

use std::io::{self, Read, Write};

use sdk_core::{MAX_REQUEST_BYTES, answer};

fn main() -> io::Result<()> {
    let mut request = Vec::new();
    // One byte more than the maximum, so that a longer request is refused and not cut.
    io::stdin().lock().take(MAX_REQUEST_BYTES as u64 + 1).read_to_end(&mut request)?;
    let mut out = io::stdout().lock();
    out.write_all(&answer(&request))?;
    out.flush()
}
