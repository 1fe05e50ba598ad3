//! No verdict is lost: not by `kill -9` under load, and not while the log is away. `cargo run --example gateway_soak` does the
//! same 200 times and for ten minutes.

use std::time::Duration;

use black_box::onslaught;

/// How often the gateway is killed here.
const KILLS: usize = 20;
/// How long the log is away here.
const AWAY: Duration = Duration::from_secs(60);

#[test]
fn a_gateway_keeps_every_verdict_through_repeated_kills() {
    onslaught::survives_kills(KILLS);
}

#[test]
fn execution_receipts_and_a_budget_survive_repeated_kills() {
    onslaught::receipts_survive_kills(KILLS);
}

#[test]
fn a_log_that_was_away_for_a_minute_gets_every_record() {
    onslaught::survives_a_log_that_is_away(AWAY);
}
