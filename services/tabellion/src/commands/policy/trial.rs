//! `tabellion policy test`: decides about statements under a policy file, without a log.
//!
//! The checks are complete except for questions to the log, such as earlier claims and chains. They are answered as by
//! an empty log, which the output states. `POST /v1/policy/evaluate` decides with the entries of a log.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use display::counted;
use merkle::{LeafIndex, TreeSize};
use registration::{Answers, Decision, Permit, PolicyInForce, Record, SideData, Violation};
use scitt::SignedStatement;
use serde::Serialize;

use crate::console::files::{self, is_stream};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion policy test policy.toml statement.cose")]
pub struct Trial {
    /// The policy (TOML)
    file: PathBuf,
    /// Signed Statements
    #[arg(required = true, value_name = "STATEMENT")]
    statements: Vec<PathBuf>,
    /// The statement's detached payload
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
}

impl Trial {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        self.refuse_unclear()?;
        let policy = super::read(&self.file)?;
        let payload = self.payload.as_deref().map(files::read).transpose()?;
        let policy = PolicyInForce::new(policy, LeafIndex::new(0));
        let results: Result<Vec<Tried>, Failure> =
            self.statements.iter().map(|file| Tried::of(file, payload.as_deref(), &policy)).collect();
        let trials = Trials::of(&policy, results?);
        context.console.result(&trials)?;
        match trials.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }

    fn refuse_unclear(&self) -> Result<(), Failure> {
        let inputs = std::iter::once(&self.file).chain(&self.statements).chain(&self.payload);
        if inputs.filter(|file| is_stream(file)).count() > 1 {
            let what = "only one of policy, statements and payload can come from standard input";
            return Err(Failure::new(Exit::Usage, "stdin-twice", what));
        }
        if self.payload.is_some() && self.statements.len() > 1 {
            let what = "--payload is for one statement, and there are more";
            return Err(Failure::new(Exit::Usage, "usage", what).hint("tabellion policy test --help"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum TrialOutcome {
    Admitted,
    Refused,
    Undecided,
}

/// The decision about one statement.
#[derive(Serialize)]
struct Tried {
    file: String,
    outcome: TrialOutcome,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<String>,
    /// How many entries the log may have with this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_entries: Option<u64>,
    /// True if the decision has [`PolicyInForce::questions`] to the log.
    asks_the_log: bool,
}

impl Tried {
    fn of(file: &Path, payload: Option<&[u8]>, policy: &PolicyInForce) -> Result<Self, Failure> {
        let bytes = files::read(file)?;
        let mut tried = match SignedStatement::parse(bytes) {
            Ok(statement) => Self::decided(&statement, payload, policy),
            Err(malformed) => Self {
                rule: "statement-malformed".to_owned(),
                detail: Some(malformed.to_string()),
                ..Self::as_yet(TrialOutcome::Refused)
            },
        };
        tried.file = file.display().to_string();
        Ok(tried)
    }

    fn decided(statement: &SignedStatement, payload: Option<&[u8]>, policy: &PolicyInForce) -> Self {
        let side_data = SideData { payload, x5chain: None };
        let authenticated = match policy.authenticate(statement, side_data) {
            Ok(authenticated) => authenticated,
            Err(untrusted) => return Self::refused(untrusted.violation()),
        };
        let record = match Record::read(&authenticated) {
            Ok(record) => record,
            Err(violation) => return Self::refused(violation),
        };
        let asks_the_log = !policy.questions(&authenticated, &record).is_empty();
        let decided = match policy.decide(&authenticated, &record, &Answers::none()) {
            Decision::Admit(permit) => Self::admitted(&permit),
            Decision::Refuse(refusal) => Self::refused(refusal.violation),
            Decision::Undecided(undecided) => Self {
                rule: undecided.rule.to_string(),
                detail: Some(undecided.why),
                ..Self::as_yet(TrialOutcome::Undecided)
            },
        };
        Self { asks_the_log, ..decided }
    }

    fn admitted(permit: &Permit) -> Self {
        let valid = permit.valid();
        Self {
            rule: permit.rule().to_string(),
            max_entries: permit.largest_tree().map(TreeSize::get),
            not_before: valid.not_before.and_then(time),
            not_after: valid.not_after.and_then(time),
            ..Self::as_yet(TrialOutcome::Admitted)
        }
    }

    fn refused(violation: Violation) -> Self {
        Self {
            rule: violation.rule.to_string(),
            place: Some(violation.place.to_string()),
            detail: Some(violation.detail),
            ..Self::as_yet(TrialOutcome::Refused)
        }
    }

    fn as_yet(outcome: TrialOutcome) -> Self {
        Self {
            file: String::new(),
            outcome,
            rule: String::new(),
            place: None,
            detail: None,
            not_before: None,
            not_after: None,
            max_entries: None,
            asks_the_log: false,
        }
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let outcome = match self.outcome {
            TrialOutcome::Admitted => "admitted",
            TrialOutcome::Refused => "refused",
            TrialOutcome::Undecided => "undecided",
        };
        writeln!(out, "{outcome:<9}  {}  by {}", safe(&self.file), safe(&self.rule))?;
        if let Some(detail) = &self.detail {
            let place = self.place.as_ref().map(|place| format!(" (at {place})")).unwrap_or_default();
            writeln!(out, "           {}{}", safe(detail), safe(&place))?;
        }
        if self.not_before.is_some() || self.not_after.is_some() {
            let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "ever".to_owned());
            writeln!(out, "           from {} to {}", end(&self.not_before), end(&self.not_after))?;
        }
        if let Some(entries) = self.max_entries {
            let entries = counted(entries, "entry", "entries");
            writeln!(out, "           while the log has fewer than {entries}")?;
        }
        match self.asks_the_log && self.outcome != TrialOutcome::Undecided {
            true => writeln!(out, "           for an empty log: entries of a log may change the decision"),
            false => Ok(()),
        }
    }
}

/// The decisions about all statements.
#[derive(Serialize)]
struct Trials {
    revision: u64,
    digest: String,
    results: Vec<Tried>,
    admitted: usize,
    refused: usize,
    undecided: usize,
}

impl Trials {
    fn of(policy: &PolicyInForce, results: Vec<Tried>) -> Self {
        let count = |outcome| results.iter().filter(|tried| tried.outcome == outcome).count();
        Self {
            revision: policy.policy().contents().revision,
            digest: policy.policy().digest().to_string(),
            admitted: count(TrialOutcome::Admitted),
            refused: count(TrialOutcome::Refused),
            undecided: count(TrialOutcome::Undecided),
            results,
        }
    }

    fn exit(&self) -> Exit {
        match (self.refused, self.undecided) {
            (0, 0) => Exit::Success,
            (0, _) => Exit::TryAgain,
            _ => Exit::Refused,
        }
    }
}

impl Report for Trials {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.results.iter().try_for_each(|tried| tried.human(out))?;
        let Self { admitted, refused, undecided, .. } = self;
        writeln!(out, "{admitted} admitted, {refused} refused, {undecided} undecided")
    }
}

fn time(seconds: u64) -> Option<String> {
    Some(jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?.to_string())
}
