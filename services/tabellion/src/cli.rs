//! The command tree. Each command's arguments are declared with its code in [`commands`](crate::commands).

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    agent, audit, backup, bench, bundle, checkpoint, completion, config, conformance, doctor, entry,
    execution, gateway, help, inbox, init, issuer, key, log, man, mcp, monitor, operator, policy, proof,
    receipt, record, register, registry, roa, serve, session, statement, stream, trust, verdict, verify, vrf,
    witness,
};
use crate::console::{Exit, Failure, safe};
use crate::context::{Context, GlobalArgs};

/// A transparency log for the actions of AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "tabellion",
    bin_name = "tabellion",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(
    before_help = "example:  tabellion serve --dev",
    after_help = "Every command also takes --color WHEN (auto, always, never), --no-progress and --quiet."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Prints clap's output: the requested help to stdout, or an error in the arguments to stderr.
pub fn usage(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Success;
    }
    let text = error.render().to_string();
    let lines: Vec<String> = text.lines().map(|line| safe(line).into_owned()).collect();
    if std::env::args_os().any(|argument| argument == "--json") {
        let what = in_a_line(&lines);
        eprintln!("{}", Failure::new(Exit::Usage, "usage", what).hint("tabellion --help").to_json());
    } else {
        eprintln!("{}", lines.join("\n"));
    }
    Exit::Usage
}

/// Joins an error and its details, the indented lines up to the first other line, in one line for `--json`.
fn in_a_line(lines: &[String]) -> String {
    let Some((what, rest)) = lines.split_first() else { return String::new() };
    let what = what.trim_start_matches("error: ");
    let particulars: Vec<&str> =
        rest.iter().take_while(|line| line.starts_with("  ")).map(|line| line.trim()).collect();
    [what, &particulars.join(", ")].join(" ").trim_end().to_owned()
}

// There is only one value, so the size of the largest variant does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the transparency service
    Serve(serve::Serve),
    /// Write a configuration and keys for a new log
    Init(init::Init),
    /// Show or check the effective configuration
    #[command(subcommand)]
    Config(config::Config),
    /// Manage the log's own keys
    #[command(subcommand)]
    Key(key::Key),
    /// Manage an issuer's signing key
    #[command(subcommand)]
    Issuer(issuer::Issuer),
    /// Manage the trust file: the trusted keys of logs and issuers
    #[command(subcommand)]
    Trust(trust::Trust),
    /// Manage the registration policy
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Approve and submit actions that need several operators
    #[command(subcommand)]
    Operator(operator::Operator),
    /// Create and inspect Signed Statements
    #[command(subcommand)]
    Statement(statement::Statement),
    /// Register files, wait for their receipts and verify them
    Register(register::Register),
    /// Fetch, inspect, verify, attach and detach Receipts
    #[command(subcommand)]
    Receipt(receipt::Receipt),
    /// Verify statements with their receipts, and bundles, offline
    Verify(verify::Verify),
    /// Pack entries of the log with all their proofs in one file
    Bundle(bundle::Bundle),
    /// Read, erase and hold the log's entries
    #[command(subcommand)]
    Entry(entry::Entry),
    /// Show the log's entries of an agent's session
    #[command(subcommand)]
    Session(session::Session),
    /// List a gateway's audit streams (VAP), and find missing records
    #[command(subcommand)]
    Stream(stream::Stream),
    /// Manage accepted statements that are not in the log yet
    #[command(subcommand)]
    Inbox(inbox::Inbox),
    /// Sign, fetch and verify verification receipts (VRF)
    #[command(subcommand)]
    Vrf(vrf::Vrf),
    /// Serve register, verify, search and session as tools of an MCP server
    Mcp(mcp::Mcp),
    /// Show the verified record of an agent
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Sign and verify execution receipts of a gateway (AgentROA)
    #[command(subcommand)]
    Execution(execution::Execution),
    /// Import, sign and read conversation records of agents
    #[command(subcommand)]
    Record(record::Record),
    /// Issue, delegate, inspect, verify and revoke envelopes (AgentROA)
    #[command(subcommand)]
    Roa(roa::Roa),
    /// Manage the registry of agents, authorizers and gateways (AgentROA)
    #[command(subcommand)]
    Registry(registry::Registry),
    /// Run and inspect the MCP gateway, which admits or denies each tool call
    #[command(subcommand)]
    Gateway(gateway::Gateway),
    /// Show and verify Verdicts of a gateway (VAP)
    #[command(subcommand)]
    Verdict(verdict::Verdict),
    /// Monitor logs: growth, freshness, consistency, split views
    #[command(subcommand)]
    Monitor(monitor::Monitor),
    /// Fetch, verify and compare checkpoints (signed tree heads)
    #[command(subcommand)]
    Checkpoint(checkpoint::Checkpoint),
    /// Fetch and verify inclusion and consistency proofs
    #[command(subcommand)]
    Proof(proof::Proof),
    /// Run a witness, and manage a log's witness policy
    #[command(subcommand)]
    Witness(witness::Witness),
    /// Repeat every admission decision, from the log alone
    Audit(audit::Audit),
    /// Test a transparency service against SCRAPI, receipts and problem details
    Conformance(conformance::Conformance),
    /// Measure registrations, make large logs, compare measurements
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Check, freeze and move the log's database
    #[command(subcommand)]
    Log(log::Log),
    /// Create, verify and restore backups of the log
    #[command(subcommand)]
    Backup(backup::Backup),
    /// Check clock, disk, database, keys, ports, log and witnesses
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completion(completion::Completion),
    /// Write manual pages of all commands
    Man(man::ManPages),
    /// Print the version
    #[command(before_help = "example:  tabellion version --json")]
    Version,
    /// Explain a topic: exit-codes, errors, config, formats, gateway, keys, policies, roa, trust, watching
    Help(help::Help),
}

impl Command {
    /// Runs the command.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Serve(command) => command.run(context),
            Self::Init(command) => command.run(context),
            Self::Config(command) => command.run(context),
            Self::Key(command) => command.run(context),
            Self::Issuer(command) => command.run(context),
            Self::Trust(command) => command.run(context),
            Self::Policy(command) => command.run(context),
            Self::Operator(command) => command.run(context),
            Self::Statement(command) => command.run(context),
            Self::Register(command) => command.run(context),
            Self::Receipt(command) => command.run(context),
            Self::Verify(command) => command.run(context),
            Self::Bundle(command) => command.run(context),
            Self::Entry(command) => command.run(context),
            Self::Session(command) => command.run(context),
            Self::Stream(command) => command.run(context),
            Self::Inbox(command) => command.run(context),
            Self::Vrf(command) => command.run(context),
            Self::Mcp(command) => command.run(context),
            Self::Agent(command) => command.run(context),
            Self::Execution(command) => command.run(context),
            Self::Record(command) => command.run(context),
            Self::Roa(command) => command.run(context),
            Self::Registry(command) => command.run(context),
            Self::Gateway(command) => command.run(context),
            Self::Verdict(command) => command.run(context),
            Self::Monitor(command) => command.run(context),
            Self::Checkpoint(command) => command.run(context),
            Self::Proof(command) => command.run(context),
            Self::Witness(command) => command.run(context),
            Self::Audit(command) => command.run(context),
            Self::Conformance(command) => command.run(context),
            Self::Bench(command) => command.run(context),
            Self::Log(command) => command.run(context),
            Self::Backup(command) => command.run(context),
            Self::Doctor(command) => command.run(context),
            Self::Completion(command) => command.run(Cli::command()),
            Self::Man(command) => command.run(context, Cli::command()),
            Self::Version => help::version(context),
            Self::Help(command) => command.run(context, Cli::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::Cli;

    /// Returns the texts that suggest commands: all documentation, and all sources of the services and the SDKs.
    fn texts() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut texts = Vec::new();
        for place in [
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "docs",
            "deploy",
            "sdk",
            "services",
        ] {
            add_texts(&root.join(place), &mut texts);
        }
        texts
    }

    /// Adds the text of a file, or of all files in a folder that are text, except for this one.
    fn add_texts(place: &Path, texts: &mut Vec<String>) {
        if place.is_dir() {
            fs::read_dir(place).unwrap().for_each(|file| add_texts(&file.unwrap().path(), texts));
        } else if !place.ends_with("tabellion/src/cli.rs") {
            texts.extend(fs::read_to_string(place));
        }
    }

    /// Finds the commands in a text: after an example, a hint, a prompt, a backtick, or at the start of a line.
    fn commands(text: &str) -> impl Iterator<Item = String> {
        let starts = [
            "example:  tabellion ",
            "hint(\"tabellion ",
            "`tabellion ",
            "Do: tabellion ",
            "\n  tabellion ",
            "\n   tabellion ",
            "\ntabellion ",
        ];
        let found = starts.into_iter().flat_map(move |start| {
            text.match_indices(start).map(move |(at, _)| {
                let command = &text[at + start.len()..];
                let end = command
                    .find(['"', '`', '\n', '|', '>', ';', '#', '\\', ',', '('])
                    .unwrap_or(command.len());
                let command = ["  ", " && ", ": "]
                    .iter()
                    .fold(&command[..end], |command, end| command.split(end).next().unwrap_or_default());
                command.trim_end_matches(['.', ':', ' ']).to_owned()
            })
        });
        // `tabellion pin v1` is the name of a format.
        found.filter(|command| {
            !command.is_empty() && !command.contains(['{', '…']) && !command.ends_with(" v1")
        })
    }

    #[test]
    fn what_is_wrong_with_the_arguments_is_told_in_a_line_with_its_particulars() {
        let message = |arguments: &[&str]| {
            let error = Cli::command().try_get_matches_from(arguments).unwrap_err();
            super::in_a_line(&error.render().to_string().lines().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(
            message(&["tabellion", "log", "adopt"]),
            "the following required arguments were not provided: --size <SIZE>, --root <ROOT>"
        );
        assert_eq!(
            message(&["tabellion", "conformance", "https://log.example"]),
            "the following required arguments were not provided: <--dev|--key <FILE>|--statement <FILE>>"
        );
        assert_eq!(message(&["tabellion", "nonsense"]), "unrecognized subcommand 'nonsense'");
        assert_eq!(super::in_a_line(&[]), "");
    }

    #[test]
    fn every_command_that_we_suggest_can_be_parsed() {
        let suggested: BTreeSet<String> =
            texts().iter().flat_map(|text| commands(text).collect::<Vec<_>>()).collect();
        assert!(suggested.len() > 50, "{suggested:?}");
        let wrong: Vec<_> = suggested.iter().filter_map(|line| what_is_wrong_with(line)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_suggestion_of_no_command_is_noticed() {
        for line in
            ["monitor show", "verify show", "bundle list -o FILE", "entry shwo on the terminal", "shows"]
        {
            assert!(what_is_wrong_with(line).is_some(), "{line}");
        }
        for line in
            ["session show ID", "help config", "verify shows", "entry erase --reason", "key rotate receipt"]
        {
            assert_eq!(what_is_wrong_with(line), None, "{line}");
        }
    }

    /// Returns what is wrong with a line that suggests a command. It may have no arguments, as prose names commands
    /// ("`tabellion verify` shows"), or go on after them.
    fn what_is_wrong_with(line: &str) -> Option<String> {
        let words = line.split_whitespace().take_while(|word| !PROSE.contains(word));
        let mut words: Vec<&str> = words.collect();
        // The line ends at a quoted value, which is not parsed.
        if words.len() > 1 {
            words.pop_if(|word| word.starts_with("--"));
        }
        if words.is_empty() {
            return Some(format!("tabellion {line}: no command"));
        }
        if let Some(word) = command_as_value(&words) {
            return Some(format!("tabellion {line}: {word} is not a command here, and is taken as a value"));
        }
        let whole = std::iter::once("tabellion").chain(words.iter().copied());
        let error = Cli::command().try_get_matches_from(whole).err()?;
        let shown = matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        // Examples use the placeholder VKEY, because a valid key cannot be invented.
        let named = error.kind() == ErrorKind::ValueValidation && words.contains(&"VKEY");
        (!shown && !named).then(|| format!("tabellion {line}: {error}"))
    }

    /// Returns the word after a command that is parsed as its value, but is the name of a command elsewhere: `show` in
    /// `verify show`. Topics of `help` may have the name of a command.
    fn command_as_value<'w>(words: &[&'w str]) -> Option<&'w str> {
        let root = Cli::command();
        let mut command = &root;
        for word in words {
            match command.find_subcommand(word) {
                Some(next) => command = next,
                None => {
                    let is_value = command.get_name() != "help" && leaves(&root).contains(word);
                    return is_value.then_some(*word);
                }
            }
        }
        None
    }

    /// Returns the names of all commands without commands below them.
    fn leaves(command: &clap::Command) -> BTreeSet<&str> {
        match command.has_subcommands() {
            true => command.get_subcommands().flat_map(leaves).collect(),
            false => BTreeSet::from([command.get_name()]),
        }
    }

    /// Words that end a command in prose.
    const PROSE: &[&str] =
        &["says", "shows", "prints", "makes", "first", "fetches", "checks", "on", "finds", "and", "or"];
}
