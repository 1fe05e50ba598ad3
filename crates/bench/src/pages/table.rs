//! The times of all pages as a table.

use std::fmt::Write;

use super::{PageResult, PagesResult};

/// Returns the result as text.
pub fn text(result: &PagesResult) -> String {
    let mut out = format!(
        "{}: {} leaves, {} rounds, one request at a time\n\n{:<32} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
        result.database,
        result.leaves,
        result.rounds,
        "page",
        "rows",
        "KiB",
        "first ms",
        "p50 ms",
        "p99 ms",
        "worst ms"
    );
    for page in &result.pages {
        write_page(&mut out, page, result.goal_ms);
    }
    let beyond = result.pages.iter().filter(|page| page.p50_ms > result.goal_ms).count();
    let goal = format!("median of each page at most {} ms", result.goal_ms);
    let _ = match beyond {
        0 => writeln!(out, "\ngoal met: {goal}"),
        _ => writeln!(out, "\ngoal MISSED by {beyond} of {} pages: {goal}", result.pages.len()),
    };
    out
}

fn write_page(out: &mut String, page: &PageResult, goal_ms: f64) {
    let PageResult { page: name, rows, bytes, first_ms, p50_ms, p99_ms, worst_ms, .. } = page;
    let kib = *bytes as f64 / 1024.0;
    let mark = if *p50_ms > goal_ms { "  MISSED" } else { "" };
    let _ = writeln!(
        out,
        "{name:<32} {rows:>5} {kib:>7.1} {first_ms:>9.2} {p50_ms:>9.2} {p99_ms:>9.2} {worst_ms:>9.2}{mark}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;

    #[test]
    fn the_table_names_the_pages_that_miss_the_goal() {
        let page = |name: &str, p50_ms| PageResult {
            page: name.to_owned(),
            path: "/ui".to_owned(),
            rows: 50,
            bytes: 2048,
            first_ms: 70.0,
            p50_ms,
            p99_ms: 80.0,
            worst_ms: 90.0,
        };
        let mut result = PagesResult {
            machine: machine::describe(),
            program: "0.1.0",
            database: "sqlite",
            leaves: 7,
            rounds: 3,
            goal_ms: 50.0,
            pages: vec![page("start", 4.0)],
        };
        let met = text(&result);
        assert!(met.starts_with("sqlite: 7 leaves, 3 rounds") && met.contains("goal met"), "{met}");
        result.pages.push(page("issuer", 51.0));
        let missed = text(&result);
        assert!(missed.contains("90.00  MISSED\n") && missed.contains("MISSED by 1 of 2 pages"), "{missed}");
    }
}
