//! The result as one HTML page: plots and tables, without scripts and requests to other places.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::{Bar, bars, rounded};
use crate::figures::{self, RoundsFigure};
use crate::goals;
use crate::result::{BenchResult, CpuCost, DatabaseResult, LoadResult, Machine, Round, Settings};
use crate::stats::median;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:right}\
td:first-child,th:first-child,td.text{text-align:left}figure{margin:1.5rem 0}figcaption{font-weight:600}\
svg{max-width:100%;height:auto;font-size:13px}.missed{color:#a8201a;font-weight:600}.must{color:#8a6100}.aim{color:#2c6e31}";

/// Returns the page.
pub fn html(result: &BenchResult) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "tabellion bench, " (result.at) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Registrations of Tabellion " (result.settings.program) }
                (conditions(result))
                @for database in &result.databases { (section(result, database)) }
            }
        }
    };
    page.into_string()
}

fn conditions(result: &BenchResult) -> Markup {
    let Machine { processor, processors, memory_bytes, load_average } = &result.machine;
    let Settings { content_type, statement_bytes, seconds, processes, .. } = &result.settings;
    html! {
        p {
            (result.at) "; " (processors) " processors (" (processor) "), " (memory_bytes >> 30)
            " GiB of memory, load average before the run " (load_average) ". Statements: " (content_type) ", "
            (statement_bytes) " bytes; " (seconds) " s for each load; " (processes) " service process(es). Client, "
            "service and database share the machine, so ratios and CPU times say more than rates."
        }
    }
}

fn section(result: &BenchResult, database: &DatabaseResult) -> Markup {
    html! {
        h2 { (database.database) ", medians of " (database.rounds.len()) " rounds" }
        (bars("Rate", "per second", &[], &rates(database)))
        (bars("CPU time", "µs for each request", &["client", "service", "database"], &costs(database)))
        (bars("Latency", "ms", &["p50", "p99 above p50"], &latencies(database)))
        (bars("Time in each stage of a registration", "mean µs", &[], &stages(database)))
        h3 { "Goals" }
        (goals_table(result, database))
        h3 { "Figures" }
        (figures_table(&figures::of_rounds(database)))
    }
}

fn rates(database: &DatabaseResult) -> Vec<Bar> {
    loads(database).map(|load| Bar::of(load.label, load.per_second)).collect()
}

fn costs(database: &DatabaseResult) -> Vec<Bar> {
    let parts = |cpu: CpuCost| vec![cpu.client_us, cpu.service_us, cpu.database_us];
    loads(database).map(|load| Bar { label: load.label, parts: parts(load.cpu) }).collect()
}

fn latencies(database: &DatabaseResult) -> Vec<Bar> {
    let parts = |load: &MedianLoad| vec![load.p50_ms, (load.p99_ms - load.p50_ms).max(0.0)];
    loads(database).map(|load| Bar { parts: parts(&load), label: load.label }).collect()
}

fn stages(database: &DatabaseResult) -> Vec<Bar> {
    let figures = figures::of_rounds(database).into_iter();
    let stage = |figure: RoundsFigure| {
        let name = figure.name.strip_prefix("stage ")?.to_owned();
        Some(Bar::of(name, figure.spread.median))
    };
    figures.filter_map(stage).collect()
}

/// A load with the medians of all rounds.
struct MedianLoad {
    label: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu: CpuCost,
}

/// Returns the medians of all loads.
fn loads(database: &DatabaseResult) -> impl Iterator<Item = MedianLoad> {
    let rounds: Vec<_> = database.rounds.iter().map(all_loads).collect();
    let count = rounds.iter().map(Vec::len).min().unwrap_or(0);
    (0..count).map(move |place| {
        let middle = |of: fn(&LoadResult) -> f64| {
            median(rounds.iter().map(|round| of(round[place].1))).unwrap_or_default()
        };
        MedianLoad {
            label: rounds[0][place].0.clone(),
            per_second: middle(|load| load.per_second),
            p50_ms: middle(|load| load.p50_ms),
            p99_ms: middle(|load| load.p99_ms),
            cpu: CpuCost {
                client_us: middle(|load| load.cpu.client_us),
                service_us: middle(|load| load.cpu.service_us),
                database_us: middle(|load| load.cpu.database_us),
            },
        }
    })
}

/// Returns the loads of a round with their labels.
fn all_loads(round: &Round) -> Vec<(String, &LoadResult)> {
    let (log, yardsticks) = (&round.log, &round.yardsticks);
    let mut all: Vec<(String, &LoadResult)> = Vec::new();
    for (name, loads) in
        [("HTTP echo", &yardsticks.echo), ("peer", &yardsticks.peer), ("registrations", &log.closed)]
    {
        all.extend(loads.iter().map(|load| (format!("{name}, {} clients", load.clients), load)));
    }
    let offered = |load: &LoadResult| format!("open loop, {:.0}/s offered", load.offered.unwrap_or_default());
    all.extend(log.open.iter().map(|load| (offered(load), load)));
    all.extend(log.types.iter().map(|typed| (typed.content_type.clone(), &typed.load)));
    all.push(("known statements".to_owned(), &log.known));
    all.push(("receipts".to_owned(), &log.proofs));
    all
}

fn goals_table(result: &BenchResult, database: &DatabaseResult) -> Markup {
    html! {
        table {
            tr { th { "Goal" } th { "Ratio" } th { "Measured" } th { "Must" } th { "Aim" } th { "Met" } }
            @for measured in goals::measured(result, database) {
                tr {
                    td { (measured.goal.label) }
                    td class="text" { (measured.goal.ratio) }
                    td { (rounded(measured.value)) }
                    td { (measured.goal.must.text()) }
                    td { (measured.goal.aim.text()) }
                    td class=(measured.verdict()) { (measured.verdict()) }
                }
            }
        }
    }
}

fn figures_table(figures: &[RoundsFigure]) -> Markup {
    html! {
        table {
            tr { th { "Figure" } th { "Median" } th { "Least" } th { "Most" } th { "Unit" } }
            @for RoundsFigure { name, unit, spread, .. } in figures {
                tr {
                    td { (name) }
                    td { (rounded(spread.median)) }
                    td { (rounded(spread.least)) }
                    td { (rounded(spread.most)) }
                    td { (unit) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_without_scripts_and_external_requests() {
        let page = html(&crate::result::sample(&[100.0, 300.0, 200.0]));
        for part in ["<!DOCTYPE html>", "<svg", "registrations, 64 clients", "G17", "CPU &lt;1&gt;"] {
            assert!(page.contains(part), "{part} is missing");
        }
        for part in ["<script", "http://", "https://", "src=", "<link", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }
}
