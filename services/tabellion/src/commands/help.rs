//! `tabellion help` and `tabellion version`.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use serde::Serialize;

use crate::cli::{Cli, Context};
use crate::console::{Exit, Failure, Report};

/// The topics and their pages.
const TOPICS: &[(&str, &str)] = &[
    ("config", include_str!("../topics/config.txt")),
    ("errors", include_str!("../topics/errors.txt")),
    ("exit-codes", include_str!("../topics/exit-codes.txt")),
    ("formats", include_str!("../topics/formats.txt")),
    ("trust", include_str!("../topics/trust.txt")),
];

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion help exit-codes")]
pub struct Help {
    /// A topic (config, errors, exit-codes, formats, trust), an error's code, or a command
    topic: Vec<String>,
}

#[derive(Serialize)]
struct Page {
    topic: String,
    text: String,
}

impl Report for Page {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }
}

impl Help {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let topic = self.topic.join(" ");
        let text = page(&topic).or_else(|| error_code(&topic)).or_else(|| command(&self.topic));
        match text {
            Some(text) => context.console.result(&Page { topic, text }),
            None => {
                Err(Failure::new(Exit::NotFound, "no-such-topic", format!("there is no help on {topic}"))
                    .fact("topics", TOPICS.map_names())
                    .hint("tabellion --help"))
            }
        }
    }
}

trait Names {
    fn map_names(&self) -> String;
}

impl Names for [(&str, &str)] {
    fn map_names(&self) -> String {
        self.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

fn page(topic: &str) -> Option<String> {
    TOPICS.iter().find(|(name, _)| *name == topic).map(|(_, text)| (*text).to_owned())
}

/// The paragraph of the errors page that opens with the code.
fn error_code(code: &str) -> Option<String> {
    let (_, errors) = TOPICS.iter().find(|(name, _)| *name == "errors")?;
    let paragraph = errors.split("\n\n").find(|paragraph| paragraph.lines().next() == Some(code))?;
    Some(format!("{}\n", paragraph.trim_end()))
}

fn command(words: &[String]) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let found = words.iter().try_fold(&mut command, |command, word| command.find_subcommand_mut(word))?;
    Some(found.render_help().to_string())
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

impl Report for Version {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "tabellion {}", self.version)
    }
}

/// Prints the version.
pub fn version(context: &Context) -> Result<(), Failure> {
    context.console.result(&Version { version: env!("CARGO_PKG_VERSION") })
}
