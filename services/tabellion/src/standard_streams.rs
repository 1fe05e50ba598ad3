//! Standard input and output as asynchronous streams, each with a thread of its own: a read that waits for a client cannot
//! be cancelled, and would keep the runtime from ending.

use std::io::{self, Read, Write};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

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

/// Returns standard output, and what resolves once its thread has ended: after the stream is dropped and all is written, or
/// the client is gone.
pub fn output() -> (DuplexStream, oneshot::Receiver<()>) {
    let (stream, from_stream) = tokio::io::duplex(BUFFER);
    let (ended, end) = oneshot::channel();
    let runtime = Handle::current();
    std::thread::spawn(move || {
        // A client that is gone reads nothing.
        let _ = write(&runtime, from_stream);
        let _ = ended.send(());
    });
    (stream, end)
}

fn write(runtime: &Handle, mut from_stream: DuplexStream) -> io::Result<()> {
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
}
