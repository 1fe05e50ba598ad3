//! Statements that the log refused because they go against an entry of the same issuer (`/v1/equivocations`).

use client::{Client, ClientError};
use data_encoding::BASE64URL_NOPAD;
use merkle::EntryDigest;
use scitt::SignedStatement;
use scitt::header::Claims;
use serde::Deserialize;

use super::Watching;
use crate::alarm::{About, Alarm, AlarmKind};
use crate::config::{Target, Watch, Who};
use crate::evidence::{EntrySeen, Evidence, Sighting};
use crate::limits::{MAX_COMPLETED, REPORT_PAGE, REPORT_PAGES};
use crate::verdict::chain;

#[derive(Deserialize)]
struct Page {
    equivocations: Vec<Report>,
}

#[derive(Deserialize)]
pub(super) struct Report {
    number: u64,
    rule: Option<String>,
    registered: Registered,
    refused: Refused,
}

#[derive(Deserialize)]
struct Registered {
    entry_id: String,
    index: u64,
}

#[derive(Deserialize)]
struct Refused {
    entry_id: String,
    statement: Option<String>,
}

impl Watching {
    /// Reads the reports that came since the last time. A log that has none to read has none.
    pub async fn read_reports(&mut self, target: &Target, client: &Client) -> Result<(), ClientError> {
        for _ in 0..REPORT_PAGES {
            let after = self.memory.report.map(|number| format!("&after={number}")).unwrap_or_default();
            let page = client.json::<Page>(&format!("v1/equivocations?limit={REPORT_PAGE}{after}")).await;
            let reports = match page {
                Ok(page) => page.equivocations,
                Err(ClientError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            };
            let whole = reports.len() == REPORT_PAGE;
            self.grow(&reports)?;
            for report in reports {
                self.report(target, client, &report).await;
                self.memory.report = Some(report.number);
            }
            if !whole {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A page holds no more reports than were asked for, each with a larger number than the one before.
    pub(super) fn grow(&self, reports: &[Report]) -> Result<(), ClientError> {
        let mut last = self.memory.report;
        for report in reports {
            if last.is_some_and(|last| report.number <= last) {
                let why = format!("v1/equivocations: report {} is not a newer one", report.number);
                return Err(ClientError::Nonsense(why));
            }
            last = Some(report.number);
        }
        match reports.len() <= REPORT_PAGE {
            true => Ok(()),
            false => Err(ClientError::Nonsense("v1/equivocations: more than was asked for".into())),
        }
    }

    /// What was found, so that its evidence can be made complete.
    pub fn found_mut(&mut self) -> &mut [Alarm] {
        &mut self.memory.untold
    }

    /// Names the issuer and the subject of a refused statement, if they are on a list, and if the issuer's own signatures show
    /// the fork. A report without the statement, with another one than it names, or with one that the issuer did not sign
    /// accuses nobody.
    async fn report(&mut self, target: &Target, client: &Client, report: &Report) {
        let Some(refused) = report.refused.parse() else { return };
        let Some((iss, sub)) = names(&refused) else { return };
        let concerns = |watch: &&Watch| match &watch.who {
            Who::Issuer(name) => *name == iss,
            Who::Subject(name) => *name == sub,
            Who::Agent(_) => false,
        };
        if !target.watches.iter().any(|watch| concerns(&watch)) {
            return;
        }
        let Ok(digest) = report.registered.entry_id.parse::<EntryDigest>() else { return };
        let Ok(registered) = client.statement(&digest).await else { return };
        if chain::forked(&registered, &refused).is_err() {
            return;
        }
        for watch in target.watches.iter().filter(concerns) {
            let rule = report.rule.as_deref().unwrap_or("no rule");
            let words = format!(
                "the log refused statement {} ({rule}): it goes against leaf {}",
                report.refused.entry_id, report.registered.index
            );
            let entries = vec![
                EntrySeen {
                    index: Some(report.registered.index),
                    entry_id: report.registered.entry_id.clone(),
                    statement: Some(BASE64URL_NOPAD.encode(registered.bytes())),
                },
                EntrySeen {
                    index: None,
                    entry_id: report.refused.entry_id.clone(),
                    statement: report.refused.statement.clone(),
                },
            ];
            let alarm =
                Alarm::new(AlarmKind::ChainFork, &target.name, About::from(&watch.who), words, self.now);
            let alarm = alarm.which(report.refused.entry_id.clone());
            self.found(alarm.shown_by(Evidence::Entries { checkpoint: None, entries }));
        }
    }
}

/// Puts into the evidence what it so far only names, so that it stands without the log: the statements, and the checkpoint of
/// the tree that holds them. Of many alarms those that come first are enough to show what is wrong.
pub async fn complete(alarms: &mut [Alarm], checkpoint: &Sighting, client: &Client) {
    for alarm in alarms.iter_mut().take(MAX_COMPLETED) {
        let Some(Evidence::Entries { entries, checkpoint: holds }) = &mut alarm.evidence else { continue };
        holds.get_or_insert_with(|| checkpoint.clone());
        for entry in entries.iter_mut().filter(|entry| entry.statement.is_none()) {
            entry.statement = statement(client, &entry.entry_id).await;
        }
    }
}

impl Refused {
    /// The statement, if it is there and is the one that is named.
    fn parse(&self) -> Option<SignedStatement> {
        let bytes = BASE64URL_NOPAD.decode(self.statement.as_ref()?.as_bytes()).ok()?;
        let statement = SignedStatement::parse(bytes).ok()?;
        (statement.digest().to_string() == self.entry_id).then_some(statement)
    }
}

/// Issuer and subject.
fn names(statement: &SignedStatement) -> Option<(String, String)> {
    let claims = statement.header().claims()?;
    Some((Claims::iss(claims)?.to_owned(), Claims::sub(claims)?.to_owned()))
}

async fn statement(client: &Client, entry: &str) -> Option<String> {
    let digest: EntryDigest = entry.parse().ok()?;
    let statement = client.statement(&digest).await.ok()?;
    Some(BASE64URL_NOPAD.encode(statement.bytes()))
}
