//! Standard input and output as asynchronous streams, each with a thread of its own: a read that waits for a client cannot
//! be cancelled, and would keep the runtime from ending.

use std::io::{self, Read, Write};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;

/// Bytes between a stream and its thread.
const BUFFER: usize = 64 << 10;

/// Returns standard input.
pub fn input() -> DuplexStream {
    let (stream, mut to_stream) = tokio::io::duplex(BUFFER);
    let runtime = Handle::current();
    std::thread::spawn(move || {
        let mut bytes = vec![0; BUFFER];
        loop {
            let read = match io::stdin().lock().read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            if runtime.block_on(to_stream.write_all(&bytes[..read])).is_err() {
                return;
            }
        }
    });
    stream
}

/// Returns standard output, and the thread that ends when all is written after the stream is dropped.
pub fn output() -> (DuplexStream, JoinHandle<io::Result<()>>) {
    let (stream, mut from_stream) = tokio::io::duplex(BUFFER);
    let runtime = Handle::current();
    let writing = std::thread::spawn(move || {
        let mut bytes = vec![0; BUFFER];
        loop {
            let read = runtime.block_on(from_stream.read(&mut bytes))?;
            if read == 0 {
                return Ok(());
            }
            let mut out = io::stdout().lock();
            out.write_all(&bytes[..read])?;
            out.flush()?;
        }
    });
    (stream, writing)
}
