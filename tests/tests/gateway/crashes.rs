//! No verdict is lost: not by `kill -9` under load, and not while the log is away. `cargo run --example gateway_soak` does the
//! same 200 times and for ten minutes.

use std::time::Duration;

use black_box::onslaught;

/// How often the gateway is killed here.
const KILLS: usize = 20;
/// How long the log is away here.
const AWAY: Duration = Duration::from_secs(60);

#[test]
fn a_gateway_that_is_killed_again_and_again_loses_nothing_and_invents_nothing() {
    onslaught::survives_kills(KILLS);
}

#[test]
fn execution_receipts_and_a_budget_outlive_a_gateway_that_is_killed_again_and_again() {
    onslaught::receipts_survive_kills(KILLS);
}

#[test]
fn a_log_that_is_away_for_a_minute_gets_everything_when_it_is_back() {
    onslaught::survives_a_log_that_is_away(AWAY);
}
