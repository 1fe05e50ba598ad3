//! The output of the commands that sign a file.

use std::path::{Path, PathBuf};

use crate::console::files::{self, Access, Existing, with_extension};
use crate::console::{Exit, Failure};
use crate::context::Context;

/// The file that is signed, and the file of its statement.
pub struct SignedOutput {
    file: PathBuf,
    output: PathBuf,
}

impl SignedOutput {
    /// Chooses the output: by default `FILE.cose`, and standard output for standard input.
    pub fn of(file: &Path, output: Option<PathBuf>) -> Self {
        let stream = files::is_stream(file).then(|| file.to_owned());
        let output = output.or(stream).unwrap_or_else(|| with_extension(file, "cose"));
        Self { file: file.to_owned(), output }
    }

    /// Writes the disclosure of a statement that has only its hash, for its owner only, to `FILE.disclosure`.
    pub fn write_disclosure(&self, context: &Context, disclosure: &[u8]) -> Result<(), Failure> {
        let named = [&self.file, &self.output].into_iter().find(|file| !files::is_stream(file));
        let named = named.ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "no-place-for-the-disclosure",
                "standard input and output leave no name for the disclosure",
            )
            .hint("name a file with --output")
        })?;
        let kept = with_extension(named, "disclosure");
        files::write(&kept, disclosure, Access::Secret, Existing::Keep)?;
        context.console.note(format!("wrote      {}", kept.display()));
        Ok(())
    }

    /// Writes the statement, and then its result with `print`, unless the statement went to standard output.
    pub fn write(
        &self,
        context: &Context,
        message: &[u8],
        print: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        files::write(&self.output, message, Access::Ordinary, Existing::Keep)?;
        if files::is_stream(&self.output) {
            return Ok(());
        }
        context.console.note(format!("wrote      {}", self.output.display()));
        print()
    }
}
