//! Formatting of rounds and alarms.

use std::io::{self, Write};
use std::path::Path;

use display::counted;
use monitor::alarm_list::{AlarmRecord, AlarmState, AlarmsError};
use monitor::round::{Outcome, Round};
use monitor::{Alarm, Evidence, EvidenceFile, MonitorExit};
use owo_colors::OwoColorize;

use crate::console::{Exit, Failure, files, safe, shell};
use crate::show::time;

/// Returns the exit code of a result.
pub fn exit(ending: MonitorExit) -> Exit {
    match ending {
        MonitorExit::Success => Exit::Success,
        MonitorExit::Error => Exit::Failure,
        MonitorExit::Failed => Exit::VerificationFailed,
        MonitorExit::Unreachable => Exit::TryAgain,
        MonitorExit::Stale => Exit::Stale,
        MonitorExit::Misbehaviour => Exit::LogMisbehaviour,
    }
}

/// Describes a result in one line.
pub fn in_words(ending: MonitorExit) -> &'static str {
    match ending {
        MonitorExit::Success => "no check failed",
        MonitorExit::Error => "the monitor itself cannot do its work",
        MonitorExit::Failed => "an issuer of a log broke a rule",
        MonitorExit::Unreachable => "a log or a part of it could not be read",
        MonitorExit::Stale => "a log's checkpoint is old, or its age is unknown",
        MonitorExit::Misbehaviour => "a log misbehaved",
    }
}

/// Prints a line for every check, including those that were not made.
pub fn round(out: &mut dyn Write, round: &Round) -> io::Result<()> {
    let shown = round.shown.as_ref().map(|shown| format!("  size {}  root {}", shown.size, shown.root));
    writeln!(out, "{}  {}{}", safe(&round.log), safe(&round.origin), shown.unwrap_or_default())?;
    for check in &round.checks {
        let (name, words) = (check.name.name(), safe(&check.words));
        match check.outcome {
            Outcome::Ok => writeln!(out, "ok    {name:12}  {words}")?,
            Outcome::Failed => writeln!(out, "{}  {name:12}  {words}", "FAIL".red())?,
            Outcome::NotChecked if words.contains("not checked") => {
                writeln!(out, "--    {name:12}  {words}")?
            }
            Outcome::NotChecked => writeln!(out, "--    {name:12}  not checked: {words}")?,
            Outcome::Unanswered => {
                writeln!(out, "--    {name:12}  not checked, because no answer was received: {words}")?
            }
        }
    }
    Ok(())
}

/// Prints an active or past alarm.
pub fn standing(out: &mut dyn Write, standing: &AlarmRecord) -> io::Result<()> {
    let AlarmRecord { id, alarm, times, .. } = standing;
    let (first, last) = (time(alarm.first_seen), time(alarm.last_seen));
    let (log, about) = (safe(&alarm.log).into_owned(), alarm.about.to_string());
    writeln!(
        out,
        "{}  {:14}  {log}: {}  {}",
        "ALARM".red(),
        alarm.kind.name(),
        safe(&about),
        safe(&alarm.words)
    )?;
    let which = if alarm.which.is_empty() { String::new() } else { format!("  {}", safe(&alarm.which)) };
    let times = counted(*times, "time", "times");
    writeln!(out, "       id {id}{which}  since {first}, last seen {last}, {times}")?;
    if standing.unlisted > 0 {
        let further = counted(standing.unlisted, "sighting", "sightings");
        writeln!(out, "       and {further} of further alarms of this kind, which are not listed")?;
    }
    if let Some(file) = &standing.evidence_file {
        writeln!(out, "       evidence {}", safe(file))?;
    }
    let over = standing.over_at.map(time).unwrap_or_default();
    match (standing.state, &standing.because) {
        (AlarmState::Raised, _) => Ok(()),
        (AlarmState::Cleared, _) => writeln!(out, "       cleared {over}"),
        (AlarmState::Reset, because) => {
            writeln!(out, "       reset {over}: {}", safe(because.as_deref().unwrap_or_default()))
        }
    }
}

/// Prints an alarm that is over.
pub fn cleared(out: &mut dyn Write, standing: &AlarmRecord) -> io::Result<()> {
    let alarm = &standing.alarm;
    let (log, about) = (safe(&alarm.log).into_owned(), alarm.about.to_string());
    let since = time(alarm.first_seen);
    writeln!(out, "over   {:14}  {log}: {}  (since {since})", alarm.kind.name(), safe(&about))
}

/// The security failure for an alarm about misbehaviour.
pub fn security(standing: &AlarmRecord, state_dir: &Path) -> Failure {
    let alarm = &standing.alarm;
    let what = format!("the log {} is not to be trusted", alarm.log);
    let failure = Failure::new(Exit::LogMisbehaviour, alarm.kind.name(), what).security();
    let failure = failure.fact("found", &*alarm.words).fact("about", alarm.about.to_string());
    let failure = failure.why("Stop relying on new receipts from this log until the alarm is explained.");
    let hint = format!("tabellion help {}", alarm.kind.name());
    match &standing.evidence_file {
        Some(file) => {
            let path = state_dir.join(file);
            let options = diff_options(&path);
            let hint = format!("tabellion checkpoint diff {} {options}", shell::path(&path));
            failure.fact("evidence saved", path.display().to_string()).hint(hint)
        }
        None => failure.hint(hint),
    }
}

/// The options for what must be known to verify the evidence: a trust file, or a log's key and its origin if that is not the
/// key's name.
fn diff_options(path: &Path) -> String {
    let file = files::read(path).ok().and_then(|bytes| EvidenceFile::parse(&bytes).ok());
    let evidence = file.and_then(|file| file.alarm.evidence);
    match evidence.as_ref().map(|evidence| (evidence, evidence.origin())) {
        Some((Evidence::Receipts { .. }, _)) => "--trust FILE".to_owned(),
        Some((_, Some(origin))) => format!("--key VKEY --origin {}", shell::quote(origin)),
        _ => "--key VKEY".to_owned(),
    }
}

/// The failure for alarms that cannot be read or changed, `monitor-state`.
pub fn unreadable(error: &AlarmsError) -> Failure {
    Failure::new(Exit::Failure, "monitor-state", "the alarms cannot be read")
        .fact("because", error.to_string())
}

/// Removes the evidence from a round's alarms, because it is stored in files.
pub fn without_evidence(round: Round) -> Round {
    let alarms = round.alarms.into_iter().map(|alarm| Alarm { evidence: None, ..alarm }).collect();
    Round { alarms, ..round }
}
