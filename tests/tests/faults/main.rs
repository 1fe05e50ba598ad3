//! Crashes, failing disks and databases, lost power, clocks, floods: what a log must survive.
#![allow(clippy::unwrap_used)]

mod clock_corrections;
mod crashes;
mod damage;
mod databases;
mod overload;
mod power_loss;
mod reads_go_on;
mod rewritten;
mod rollbacks;
mod sabotage;
mod shared_pin;
mod soak;
mod starved;
mod stopping;
mod storage_faults;
mod two_processes;
