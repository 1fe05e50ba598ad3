//! The long form of `tests/gateway_crashes.rs`: a gateway that is killed 200 times under load, and a log that is away for ten
//! minutes. Run by `./test --run cargo run --release -p black-box --example gateway_soak`; other numbers as arguments.

use std::time::{Duration, Instant};

use black_box::onslaught;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let (kills, seconds) = (arguments.next().unwrap_or(200), arguments.next().unwrap_or(600));
    let begun = Instant::now();
    onslaught::survives_kills(usize::try_from(kills).expect("a few"));
    onslaught::receipts_survive_kills(usize::try_from(kills).expect("a few"));
    println!("{kills} kills: nothing lost, nothing twice ({:?})", begun.elapsed());
    let begun = Instant::now();
    onslaught::survives_a_log_that_is_away(Duration::from_secs(seconds));
    println!("{seconds} s without a log: nothing lost, nothing twice ({:?})", begun.elapsed());
}
