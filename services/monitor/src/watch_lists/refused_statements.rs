//! Statements that the log refused because they conflict with an entry of the same issuer, as the log reports them (`GET
//! /v1/equivocations`).

use client::{Client, ClientError};
use data_encoding::BASE64URL_NOPAD;
use merkle::EntryDigest;
use scitt::SignedStatement;
use serde::Deserialize;

use super::WatchLists;
use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::config::{Watch, WatchedLog, Who};
use crate::evidence::{EntrySeen, Evidence, Sighting};
use crate::limits::{MAX_COMPLETED, REPORT_PAGE, REPORT_PAGES};
use crate::verdict::chain;

#[derive(Deserialize)]
struct ReportPage {
    equivocations: Vec<RefusalReport>,
}

#[derive(Deserialize)]
pub(super) struct RefusalReport {
    number: u64,
    rule: Option<String>,
    registered: RegisteredEntry,
    refused: RefusedStatement,
}

#[derive(Deserialize)]
struct RegisteredEntry {
    entry_id: String,
    index: u64,
}

#[derive(Deserialize)]
struct RefusedStatement {
    entry_id: String,
    statement: Option<String>,
}

impl WatchLists {
    /// Processes the reports since the last round. A log without the endpoint (404) has no reports.
    pub async fn read_refused_statements(
        &mut self,
        target: &WatchedLog,
        client: &Client,
    ) -> Result<(), ClientError> {
        for _ in 0..REPORT_PAGES {
            let after = self.memory.report.map(|number| format!("&after={number}")).unwrap_or_default();
            let page =
                client.json::<ReportPage>(&format!("v1/equivocations?limit={REPORT_PAGE}{after}")).await;
            let reports = match page {
                Ok(page) => page.equivocations,
                Err(ClientError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            };
            let whole = reports.len() == REPORT_PAGE;
            self.check_page(&reports)?;
            for report in reports {
                self.observe_refusal(target, client, &report).await;
                self.memory.report = Some(report.number);
            }
            if !whole {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks that a page has at most [`REPORT_PAGE`] reports, with strictly increasing numbers.
    pub(super) fn check_page(&self, reports: &[RefusalReport]) -> Result<(), ClientError> {
        let mut last = self.memory.report;
        for report in reports {
            if last.is_some_and(|last| report.number <= last) {
                let why =
                    format!("v1/equivocations: the number of report {} does not increase", report.number);
                return Err(ClientError::Nonsense(why));
            }
            last = Some(report.number);
        }
        match reports.len() <= REPORT_PAGE {
            true => Ok(()),
            false => Err(ClientError::Nonsense("v1/equivocations: more reports than requested".into())),
        }
    }

    /// The alarms that the sink has not saved yet, for the completion of their evidence.
    pub fn unreported_mut(&mut self) -> &mut [Alarm] {
        &mut self.memory.unreported
    }

    /// Raises an alarm for a refused statement if its issuer or subject is on a list and the issuer's own signatures
    /// prove the fork. Reports with a missing, different or unsigned statement are ignored.
    async fn observe_refusal(&mut self, target: &WatchedLog, client: &Client, report: &RefusalReport) {
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
                "the log refused statement {} ({rule}): it contradicts leaf {}",
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
            let alarm = Alarm::new(
                AlarmKind::ChainFork,
                &target.name,
                AlarmSubject::from(&watch.who),
                words,
                self.now,
            );
            let alarm = alarm.which(report.refused.entry_id.clone());
            self.add(alarm.shown_by(Evidence::Entries { checkpoint: None, entries }));
        }
    }
}

/// Adds missing statements and the checkpoint to the evidence, so that it can be verified without the log. Only the
/// first [`MAX_COMPLETED`] alarms are completed; they suffice to show the fault.
pub async fn complete_evidence(alarms: &mut [Alarm], checkpoint: &Sighting, client: &Client) {
    for alarm in alarms.iter_mut().take(MAX_COMPLETED) {
        let Some(Evidence::Entries { entries, checkpoint: holds }) = &mut alarm.evidence else { continue };
        holds.get_or_insert_with(|| checkpoint.clone());
        for entry in entries.iter_mut().filter(|entry| entry.statement.is_none()) {
            entry.statement = statement(client, &entry.entry_id).await;
        }
    }
}

impl RefusedStatement {
    /// Parses the statement; `None` if it is missing or does not match the entry ID.
    fn parse(&self) -> Option<SignedStatement> {
        let bytes = BASE64URL_NOPAD.decode(self.statement.as_ref()?.as_bytes()).ok()?;
        let statement = SignedStatement::parse(bytes).ok()?;
        (statement.digest().to_string() == self.entry_id).then_some(statement)
    }
}

/// Issuer and subject of a statement.
fn names(statement: &SignedStatement) -> Option<(String, String)> {
    let header = statement.header();
    Some((header.iss()?.to_owned(), header.sub()?.to_owned()))
}

async fn statement(client: &Client, entry: &str) -> Option<String> {
    let digest: EntryDigest = entry.parse().ok()?;
    let statement = client.statement(&digest).await.ok()?;
    Some(BASE64URL_NOPAD.encode(statement.bytes()))
}
