//! Rebuilds when a migration is added: the compiler sees only those it has read.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/verification-sqlite");
}
