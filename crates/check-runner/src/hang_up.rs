//! The end of a runner whose signer has ended: nothing waits for the work any more, and the next start runs it again.
//!
//! The signer may end in the middle of a batch, which can take minutes. The runner reads no line then, so a thread of its own
//! waits for the end of the pipe.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Ends this process, and its guests with it, once the signer has closed the pipe at standard input or has ended. To be called
/// after [`restrict`](crate::restrict()), because it starts a thread.
///
/// # Errors
/// If the thread cannot be started.
pub fn end_with_signer() -> io::Result<()> {
    std::thread::Builder::new().name("hang-up".to_owned()).spawn(end_after_hang_up).map(drop)
}

fn end_after_hang_up() {
    wait_for_hang_up(io::stdin());
    std::process::exit(0)
}

/// Waits until a pipe has no writer any more, whether what was written is read or not. Files never hang up.
fn wait_for_hang_up(input: impl AsFd) {
    loop {
        // A hang-up is reported without being asked for.
        let mut polled = [PollFd::new(&input, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_pipe_hangs_up_once_its_writer_is_gone_even_if_it_was_not_read() {
        let (input, mut writer) = io::pipe().unwrap();
        writer.write_all(b"a line\n").unwrap();
        let waiting = std::thread::spawn(move || wait_for_hang_up(input));
        drop(writer);
        waiting.join().unwrap();
    }
}
