//! Any log that was admitted audits clean; any row that was changed does not.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::Memory;
use tokio::runtime::Runtime;

use crate::clean::{audited, erase, mixed_log};
use crate::edits::{audited_file, by_hand, copy, number, second_policy};
use crate::mixed::KINDS;

/// What becomes of a log: another batch, a policy, an erasure.
#[derive(Clone, Debug)]
enum Event {
    Batch(usize),
    Policy,
    Erase(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1usize..40).prop_map(Event::Batch),
        1 => Just(Event::Policy),
        1 => any::<prop::sample::Index>().prop_map(Event::Erase),
    ]
}

fn config(cases: u32) -> Config {
    Config { failure_persistence: None, ..Config::with_cases(cases) }
}

#[test]
fn whatever_was_admitted_is_admitted_again() {
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(config(8));
    let outcome = runner.run(&prop::collection::vec(event(), 1..12), |events| {
        runtime.block_on(async {
            let (mut log, mut mixer) = mixed_log(Arc::new(Memory::new()), 1).await;
            let (mut policies, mut erasures) = (0, 0);
            for event in events {
                match event {
                    Event::Batch(count) => drop(log.register(mixer.batch(count)).await),
                    Event::Policy => {
                        policies += 1;
                        let more = format!("\n[[type]]\ncontent_type = \"text/x-{policies}\"\n");
                        let revised = log.revised(&(mixer.toml() + &more));
                        log.register(vec![revised.into()]).await;
                    }
                    Event::Erase(index) => {
                        let leaf = 1 + index.index(14) as u64; // of the first batch: no policy is there
                        erase(&mut log, erasures, &[leaf]).await;
                        erasures += 1;
                    }
                }
            }
            let report = audited(&*log.store).await;
            prop_assert_eq!(report.findings, vec![]);
            prop_assert_eq!(report.counts.entries, log.size());
            Ok(())
        })
    });
    outcome.unwrap();
}

/// One edit of one row, as SQL. Every column of every table that a decision or the tree stands on is among them.
fn edit(kind: usize, leaf: u64, position: usize) -> String {
    let flip = |column: &str| {
        let place = format!("(1 + {position} % length({column}))");
        format!(
            "{column} = CAST(substr({column}, 1, {place} - 1)
               || (CASE substr({column}, {place}, 1) WHEN x'00' THEN x'01' ELSE x'00' END)
               || substr({column}, {place} + 1) AS BLOB)"
        )
    };
    let batch = leaf % 5 + 1;
    match kind {
        0 => format!("UPDATE entry SET {} WHERE idx = {leaf}", flip("statement")),
        1 => format!("UPDATE entry SET {} WHERE idx = {leaf}", flip("digest")),
        2 => format!("UPDATE entry SET rule = rule || 'x' WHERE idx = {leaf}"),
        3 => format!("UPDATE entry SET policy = policy + 1 WHERE idx = {leaf}"),
        4 => format!("UPDATE entry SET facts = facts || ' ' WHERE idx = {leaf}"),
        5 => format!("UPDATE entry SET statement = NULL WHERE idx = {leaf}"),
        6 => format!("DELETE FROM entry WHERE idx = {leaf}"),
        7 => format!("UPDATE collateral SET {} WHERE idx = {leaf}", flip("bytes")),
        8 => format!("DELETE FROM collateral WHERE idx = {leaf}"),
        9 => format!("DELETE FROM guard WHERE idx = {leaf}"),
        10 => format!("UPDATE guard SET idx = idx + 1 WHERE idx = {leaf}"),
        11 => format!("UPDATE guard SET {} WHERE idx = {leaf}", flip("key")),
        12 => format!("DELETE FROM seen WHERE idx = {leaf}"),
        13 => format!("UPDATE seen SET idx = idx + 1 WHERE idx = {leaf}"),
        14 => format!("UPDATE seen SET {} WHERE idx = {leaf}", flip("key")),
        15 => format!("UPDATE tile SET {} WHERE level = 0", flip("data")),
        16 => format!("UPDATE batch SET at = at + 1 WHERE batch = {batch}"),
        17 => format!("UPDATE batch SET {} WHERE batch = {batch}", flip("root")),
        18 => format!("UPDATE batch SET size = size - 1 WHERE batch = {batch}"),
        19 => format!("DELETE FROM batch WHERE batch = {batch}"),
        20 => format!(
            "UPDATE head_signature SET {} WHERE size = (SELECT size FROM batch WHERE batch = {batch})",
            flip("bytes")
        ),
        21 => format!("UPDATE log_key SET {}", flip("public")),
        22 => "UPDATE log SET policy = policy - 1".to_owned(),
        _ => "UPDATE log SET at = at + 1".to_owned(),
    }
}

/// How many kinds of edits there are.
const EDITS: usize = 24;
/// Those of one entry: the finding must name it.
const OF_AN_ENTRY: usize = 15;

#[test]
fn whatever_row_is_changed_is_found() {
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(config(48));
    let strategy = (0..EDITS, any::<prop::sample::Index>(), any::<u16>());
    let outcome = runner.run(&strategy, |(kind, index, position)| {
        let leaf = index.index(2 * second_policy() as usize) as u64;
        let statement = edit(kind, leaf, usize::from(position));
        let (changed, report) = runtime.block_on(async {
            let (path, _folder) = copy().await;
            (by_hand(&path, std::slice::from_ref(&statement)).await[0], audited_file(&path).await)
        });
        // Facts of a statement whose payload was not kept cannot be read again.
        prop_assume!(kind != 4 || leaf == 0 || number(leaf) % KINDS != 7);
        // Not every entry has collateral or guards.
        prop_assert_eq!(report.is_clean(), changed == 0, "{}", statement);
        let named = report.findings.iter().any(|finding| finding.leaf == Some(leaf));
        prop_assert!(changed == 0 || kind >= OF_AN_ENTRY || named, "{statement}: {:#?}", report.findings);
        Ok(())
    });
    outcome.unwrap();
}
