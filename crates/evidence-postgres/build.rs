//! A new migration must be compiled in, although no source file changed.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/evidence-postgres");
}
