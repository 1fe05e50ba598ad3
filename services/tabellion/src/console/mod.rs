//! Output of commands: results to stdout, everything else to stderr.

pub mod exit;
pub mod failure;
pub mod files;
pub mod safe_json;
pub mod shell;
mod table;

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

pub use display::safe;
pub use exit::Exit;
pub use failure::Failure;
pub use table::{Cell, Column, Table};

/// A command's result, as JSON and for display.
pub trait Report: Serialize {
    /// Writes the result for display. Untrusted text must be escaped with [`safe`].
    fn human(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Creates a value that serializes as a JSON object with these members, in this order.
///
/// A member without a value borrows the variable of its name: `members! { size, root: head.root().to_string() }`.
macro_rules! members {
    ($($(#[$attribute:meta])* $name:ident $(: $value:expr)?),+ $(,)?) => {{
        #[allow(non_camel_case_types, reason = "the type parameters have the names of the members")]
        let members = {
            #[derive(serde::Serialize)]
            struct Members<$($name),+> {
                $($(#[$attribute])* $name: $name),+
            }
            Members { $($name: $crate::console::members!(@value $name $(, $value)?)),+ }
        };
        members
    }};
    (@value $name:ident, $value:expr) => { $value };
    (@value $name:ident) => { &$name };
}
pub(crate) use members;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The output options of a command.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// True to print results and errors as JSON (`--json`).
    pub json: bool,
    /// The use of colours (`--color`).
    pub color: Color,
    /// False if progress bars are disabled (`--no-progress`).
    pub progress: bool,
    /// True if only results and errors are printed (`--quiet`).
    pub quiet: bool,
}

impl Console {
    /// Prints the result to stdout.
    pub fn result(&self, report: &impl Report) -> Result<(), Failure> {
        self.print(report, |out| report.human(out))
    }

    /// Prints a result to stdout: `json` with `--json`, otherwise the text that `human` writes, as [`Report::human`].
    pub fn print(
        &self,
        json: &impl Serialize,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.item(json, human).map(|_| ())
    }

    /// Prints one of several results. Returns `false` after the reader closed the pipe (`| head`).
    pub fn item(
        &self,
        json: &impl Serialize,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<bool, Failure> {
        let mut out = AutoStream::new(io::stdout(), self.choice()).lock();
        let written = if self.json {
            safe_json::write(&mut out, json).and_then(|()| out.write_all(b"\n"))
        } else {
            human(&mut out)
        };
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true).map_err(Failure::from),
        }
    }

    /// Writes what stands above the results of a command that prints several, except with `--json`.
    pub fn heading(&self, human: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let mut out = AutoStream::new(io::stdout(), self.choice()).lock();
        ignore_closed_pipe(human(&mut out).and_then(|()| out.flush()))
    }

    /// Returns whether results are printed for a person at a terminal.
    pub fn writes_to_terminal(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Prints the address of a service: with `--json` to stdout, for a script that waits for it, otherwise to stderr,
    /// because an MCP client that starts the command parses its stdout as messages.
    pub fn announce(&self, report: &impl Report) -> Result<(), Failure> {
        if self.json {
            return self.result(report);
        }
        let mut err = AutoStream::new(io::stderr(), self.choice()).lock();
        ignore_closed_pipe(report.human(&mut err))
    }

    /// Prints a hint, a warning or another remark to stderr, except with `--json` or `--quiet`. The text is escaped here.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.json && !self.quiet {
            let mut err = AutoStream::new(io::stderr(), self.choice()).lock();
            let _ = writeln!(err, "{}", safe(line.as_ref()));
        }
    }

    /// Prints a failure to stderr, as JSON or text.
    pub fn failure(&self, failure: &Failure) {
        let mut err = AutoStream::new(io::stderr(), self.choice()).lock();
        let _ = if self.json {
            writeln!(err, "{}", failure.to_json())
        } else {
            write!(err, "{}", failure.to_text())
        };
    }

    /// Returns whether output to stderr may be coloured.
    pub fn colours_stderr(&self) -> bool {
        self.colours(AutoStream::choice(&io::stderr()))
    }

    /// Returns whether output to stdout may be coloured.
    #[cfg(feature = "browse")]
    pub fn colours_stdout(&self) -> bool {
        self.colours(AutoStream::choice(&io::stdout()))
    }

    fn colours(&self, by_default: ColorChoice) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => by_default != ColorChoice::Never,
        }
    }

    /// Returns whether a progress bar would be visible.
    pub fn draws_progress(&self) -> bool {
        self.progress && !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// Creates a progress bar for log entries; hidden unless [`draws_progress`](Self::draws_progress).
    pub fn entries_bar(&self) -> ProgressBar {
        self.bar(0, "{bar:40} {pos}/{len} entries  {per_sec}  {eta} left")
    }

    /// Creates a progress bar for a file of this many bytes; hidden unless [`draws_progress`](Self::draws_progress).
    pub fn bytes_bar(&self, bytes: u64) -> ProgressBar {
        self.bar(bytes, "{bar:40} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left")
    }

    /// Creates a progress bar of files without an estimate; hidden unless [`draws_progress`](Self::draws_progress).
    pub fn files_bar(&self, files: usize) -> ProgressBar {
        self.bar(files as u64, "{bar:40} {pos}/{len}  {elapsed}")
    }

    fn bar(&self, length: u64, template: &str) -> ProgressBar {
        if !self.draws_progress() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(template);
        ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    fn choice(&self) -> ColorChoice {
        match self.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }
}

/// Ignores the error of a closed pipe (`| head`).
pub(crate) fn ignore_closed_pipe(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}
