//! `tabellion man`: writes a manual page for every command, from the same declarations as `--help`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;

use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, members, safe};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion man /usr/local/share/man/man1")]
pub struct ManPages {
    /// The folder for the pages, created if necessary
    folder: PathBuf,
}

impl ManPages {
    /// Writes the pages of `program` and of all its commands. Existing pages are replaced.
    pub fn run(self, context: &Context, mut program: clap::Command) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder)?;
        program.build();
        let mut pages = 0_u64;
        for command in with_descendants(&program) {
            self.write(command)?;
            pages += 1;
        }
        let folder = self.folder.display().to_string();
        context.console.print(&members! { folder, pages }, |out| {
            writeln!(out, "wrote      {pages} pages to {}", safe(&folder))
        })
    }

    /// Writes one page. The page of `tabellion key rotate` is `tabellion-key-rotate.1`.
    fn write(&self, command: &clap::Command) -> Result<(), Failure> {
        let page = Man::new(command.clone());
        let mut text = Vec::new();
        page.render(&mut text)?;
        files::write(&self.folder.join(page.get_filename()), &text, Access::Ordinary, Existing::Replace)
    }
}

/// Returns a command and all commands below it, parents first.
fn with_descendants(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().flat_map(with_descendants);
    std::iter::once(command).chain(below).collect()
}
