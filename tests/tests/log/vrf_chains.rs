//! VRF chains on a whole log: whoever races for a place, one gets it, the other is a report, and an audit agrees.

use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use black_box::{Cell, Connection, Holds, Log, Service, on_both_databases};
use scitt::SignedStatement;
use serde_json::Value;
use testkit::{receipt_about, verifier};

/// Chains in a scenario.
const CHAINS: u64 = 3;
/// Who race for one place.
const RIVALS: u64 = 4;

/// The guards of entry 2, a receipt after another one: its ID, its place, its position, and that it is the successor.
const GUARDS: [&str; 4] = [
    "key = (SELECT key FROM guard WHERE idx = 2 ORDER BY key LIMIT 1)",
    "key = (SELECT key FROM guard WHERE idx = 2 ORDER BY key LIMIT 1 OFFSET 1)",
    "key = (SELECT key FROM guard WHERE idx = 2 ORDER BY key LIMIT 1 OFFSET 2)",
    "key = (SELECT key FROM guard WHERE idx = 2 ORDER BY key LIMIT 1 OFFSET 3)",
];

/// The `n`th receipt of a chain: the first one, or one after another.
fn receipt(chain: u64, n: u64, previous: Option<&SignedStatement>) -> SignedStatement {
    let receipt = receipt_about(chain * 100 + n, &format!("did:web:agent-{chain}.example"));
    let receipt = match previous {
        Some(previous) => receipt.after(previous.digest(), 1),
        None => receipt,
    };
    receipt.sign(&verifier()).unwrap()
}

/// Registers and waits for what becomes of it.
pub fn settled(connection: &mut Connection, statement: &SignedStatement) -> u16 {
    let started = Instant::now();
    let posted = connection.post(statement.bytes()).status;
    while posted == 202 && started.elapsed() < Duration::from_secs(20) {
        match connection.get(&format!("/entries/{}", statement.digest())).status {
            204 => sleep(Duration::from_millis(50)),
            status => return status,
        }
    }
    posted
}

/// Rivals for the place after `first`, each by a connection of its own, all at once; how many got it.
fn race(services: &[&Service], first: &SignedStatement, chain: u64) -> usize {
    let rivals: Vec<_> = (1..=RIVALS).map(|n| receipt(chain, n, Some(first))).collect();
    thread::scope(|scope| {
        let racing: Vec<_> = rivals
            .iter()
            .zip(services.iter().cycle())
            .map(|(rival, service)| scope.spawn(|| settled(&mut service.connection(), rival)))
            .collect();
        let ended: Vec<u16> = racing.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(ended.iter().all(|status| matches!(status, 200 | 201 | 400 | 404)), "{ended:?}");
        ended.iter().filter(|status| matches!(status, 200 | 201)).count()
    })
}

fn scenario_of(log: &Log, services: &[&Service]) {
    let mut connection = services[0].connection();
    for chain in 0..CHAINS {
        let first = receipt(chain, 0, None);
        assert!(matches!(settled(&mut connection, &first), 200 | 201));
        assert_eq!(race(services, &first, chain), 1, "one successor");
    }
    // A receipt whose predecessor comes after it.
    let early = receipt(90, 0, None);
    let late = receipt(90, 1, Some(&early));
    for statement in [&late, &early] {
        assert!(matches!(settled(&mut connection, statement), 200 | 201));
    }
    let answer = connection.get("/v1/equivocations?limit=64");
    let reports: Value = serde_json::from_slice(&answer.body).unwrap();
    let reports = reports["equivocations"].as_array().unwrap();
    assert_eq!(reports.len() as u64, CHAINS * (RIVALS - 1), "{reports:?}");
    let audit = log.tabellion(&["audit", "--json"]);
    assert_eq!((audit.code, &audit.json()["clean"]), (Some(0), &true.into()), "{audit}");
}

on_both_databases! {
    fn of_rivals_for_a_place_one_gets_it_and_the_others_are_kept(log: Log) {
        let service = log.serve();
        scenario_of(&log, &[&service]);
        service.stop();
        log.must_be_sound();
    }

    fn each_lost_guard_of_a_receipt_after_another_is_named_by_a_check(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let first = receipt(0, 0, None);
        let second = receipt(0, 1, Some(&first));
        for statement in [&first, &second] {
            assert!(matches!(settled(&mut connection, statement), 200 | 201));
        }
        service.stop();
        log.must_be_sound();
        for row in GUARDS {
            let key =
                Cell { table: "guard", column: "key", sqlite: row, postgres: None, holds: Holds::Bytes };
            log.database().flip(&key, 0);
            log.fsck_must_name("guard: a guard of entry 2");
            log.database().mend("guard");
        }
        log.must_be_sound();
    }
}

#[test]
fn rivals_at_two_processes_are_no_different() {
    let log = Log::postgres();
    let (leader, follower) = (log.serve(), log.serve());
    scenario_of(&log, &[&leader, &follower]);
    follower.stop();
    leader.stop();
    log.must_be_sound();
}
