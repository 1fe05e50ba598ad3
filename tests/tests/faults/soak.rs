//! Half a minute of what `cargo run -p black-box --example soak` does for half an hour.

use std::time::Duration;

use black_box::{Log, Soak};

#[test]
fn r64_nobody_is_accused_who_is_honest_however_often_everybody_is_killed_and_started_again() {
    let soak =
        Soak { lasting: Duration::from_secs(30), calm_for: Duration::from_secs(3), seed: fastrand::u64(..) };
    let soaked = soak.on(&Log::sqlite());
    eprintln!("{}", soaked.told);
    assert!(soaked.wrong.is_empty(), "{:#?}\n{}", soaked.wrong, soaked.told);
}
