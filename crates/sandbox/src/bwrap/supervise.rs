//! Supervision of one guest: reads what it writes, feeds its standard input, and kills it at the first bound that it exceeds.
//!
//! One loop polls all pipes and the process, so that no pipe can block another. Killing bubblewrap ends the guest's whole process
//! namespace (`--die-with-parent`). The kernel ties that to the thread which started bubblewrap: it must be the one that waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Bytes that are read or written at once.
const CHUNK: usize = 64 << 10;

/// Time for the pipes to close after the guest was killed.
const CLOSING: Duration = Duration::from_secs(5);

/// The bound that ended a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Time,
    Output,
}

/// A pipe that the guest writes to, and the first bytes that came out of it.
pub(super) struct Capture {
    pipe: Option<OwnedFd>,
    limit: usize,
    pub(super) bytes: Vec<u8>,
}

impl Capture {
    pub(super) fn new(pipe: impl Into<OwnedFd>, limit: usize) -> io::Result<Self> {
        Ok(Self { pipe: Some(not_blocking(pipe.into())?), limit, bytes: Vec::new() })
    }

    /// Reads what is there; `false` if it is more than the limit.
    fn read(&mut self) -> io::Result<bool> {
        let Some(pipe) = &self.pipe else { return Ok(true) };
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(pipe, &mut chunk) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let fits = count.min(self.limit - self.bytes.len());
                self.bytes.extend_from_slice(&chunk[..fits]);
                return Ok(fits == count);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }
}

/// Bytes for the guest's standard input.
pub(super) struct Feed<'a> {
    pipe: Option<OwnedFd>,
    rest: &'a [u8],
}

impl<'a> Feed<'a> {
    pub(super) fn new(pipe: impl Into<OwnedFd>, bytes: &'a [u8]) -> io::Result<Self> {
        let pipe = not_blocking(pipe.into())?;
        Ok(Self { pipe: (!bytes.is_empty()).then_some(pipe), rest: bytes })
    }

    /// Writes what fits; closes the pipe at the end, or if the guest does not read.
    fn write(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        match rustix::io::write(pipe, &self.rest[..self.rest.len().min(CHUNK)]) {
            Ok(count) => self.rest = &self.rest[count..],
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(Errno::PIPE) => self.rest = &[],
            Err(error) => return Err(error.into()),
        }
        if self.rest.is_empty() {
            self.pipe = None;
        }
        Ok(())
    }
}

/// Waits for the end of the guest, and kills it if it exceeds a bound or if it cannot be supervised.
pub(super) fn supervise(
    child: &mut Child,
    stdin: &mut Feed<'_>,
    captures: &mut [Capture],
    deadline: Instant,
) -> io::Result<Option<Exceeded>> {
    let watched = watch(child, stdin, captures, deadline);
    child.kill()?; // no error if it has ended
    child.wait()?;
    watched
}

fn watch(
    child: &mut Child,
    stdin: &mut Feed<'_>,
    captures: &mut [Capture],
    deadline: Instant,
) -> io::Result<Option<Exceeded>> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut watch = Watch { deadline, exceeded: None, running: true };
    while watch.running || captures.iter().any(|capture| capture.pipe.is_some()) {
        let Some(ready) = wait(&process, watch.running, stdin, captures, watch.deadline)? else {
            if !watch.running {
                break; // the pipes of a guest that has ended did not close
            }
            watch.end(child, Exceeded::Time)?;
            continue;
        };
        if ready.process {
            watch.running = false;
            watch.deadline = Instant::now() + CLOSING;
        }
        if ready.stdin {
            stdin.write()?;
        }
        for capture in ready.captures {
            if !captures[capture].read()? {
                captures[capture].pipe = None;
                watch.end(child, Exceeded::Output)?;
            }
        }
    }
    Ok(watch.exceeded)
}

struct Watch {
    deadline: Instant,
    exceeded: Option<Exceeded>,
    running: bool,
}

impl Watch {
    /// Kills the guest. The first bound that it exceeded is the one that counts.
    fn end(&mut self, child: &mut Child, exceeded: Exceeded) -> io::Result<()> {
        self.exceeded.get_or_insert(exceeded);
        self.deadline = Instant::now() + CLOSING;
        if self.running { child.kill() } else { Ok(()) }
    }
}

/// What can go on: whether the process has ended, standard input, and the indices of captures.
struct Ready {
    process: bool,
    stdin: bool,
    captures: Vec<usize>,
}

/// Returns what can go on, `None` at the deadline.
fn wait(
    process: &OwnedFd,
    running: bool,
    stdin: &Feed<'_>,
    captures: &[Capture],
    deadline: Instant,
) -> io::Result<Option<Ready>> {
    let mut sources: Vec<(Source, BorrowedFd<'_>)> = Vec::new();
    sources.extend(running.then(|| (Source::Process, process.as_fd())));
    sources.extend(stdin.pipe.as_ref().map(|pipe| (Source::Stdin, pipe.as_fd())));
    let pipes =
        captures.iter().enumerate().filter_map(|(index, capture)| Some((index, capture.pipe.as_ref()?)));
    sources.extend(pipes.map(|(index, pipe)| (Source::Capture(index), pipe.as_fd())));

    let mut polled: Vec<_> =
        sources.iter().map(|(source, pipe)| PollFd::from_borrowed_fd(*pipe, source.events())).collect();
    if !poll_until(&mut polled, deadline)? {
        return Ok(None);
    }
    let ready = || {
        sources
            .iter()
            .zip(&polled)
            .filter(|(_, polled)| !polled.revents().is_empty())
            .map(|((source, _), _)| *source)
    };
    Ok(Some(Ready {
        process: ready().any(|source| source == Source::Process),
        stdin: ready().any(|source| source == Source::Stdin),
        captures: ready().filter_map(Source::capture).collect(),
    }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Process,
    Stdin,
    Capture(usize),
}

impl Source {
    fn events(self) -> PollFlags {
        if self == Self::Stdin { PollFlags::OUT } else { PollFlags::IN }
    }

    fn capture(self) -> Option<usize> {
        match self {
            Self::Capture(index) => Some(index),
            Self::Process | Self::Stdin => None,
        }
    }
}

/// Returns whether something is ready before the deadline.
fn poll_until(polled: &mut [PollFd<'_>], deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(polled, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

fn not_blocking(pipe: OwnedFd) -> io::Result<OwnedFd> {
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    Ok(pipe)
}
