//! The state of the service: what it does, what waits, the last check of its storage, and the latency of registrations as a
//! chart and as a table.

use display::counted;
use maud::{Markup, html};

use crate::layout::{PageFrame, facts, time};
use crate::text::line;

/// The state of the service.
#[derive(Clone, Debug, Default)]
pub struct StatusPage {
    /// Whether this process registers statements, in words.
    pub state: String,
    /// Version of the program.
    pub version: String,
    /// Statements that wait for the sequencer.
    pub queued: u64,
    /// Entries that searches do not find yet.
    pub unindexed: u64,
    /// Time (RFC 3339) of the last check of the whole storage without findings; absent before the first one.
    pub checked: Option<String>,
    /// Latency of each stage of a registration since the process started.
    pub latencies: Vec<LatencyRow>,
}

/// The latency of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyRow {
    /// The stage.
    pub stage: String,
    /// Number of registrations that passed it.
    pub count: u64,
    /// Upper bound of the median in seconds; `None` if it is beyond the last bucket of the histogram.
    pub median: Option<f64>,
    /// Upper bound of the 99th percentile in seconds; `None` as above.
    pub p99: Option<f64>,
}

/// Width of the chart in its own units.
const WIDTH: f64 = 640.0;
/// Height of one row of the chart.
const ROW: f64 = 28.0;
/// Room for the names of the stages.
const LEFT: f64 = 72.0;
/// Room for the axis.
const BOTTOM: f64 = 24.0;
/// The decades of the axis in seconds, with their names.
const DECADES: [(f64, &str); 6] =
    [(1e-4, "0.1 ms"), (1e-3, "1 ms"), (1e-2, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s")];
/// The end of the axis in seconds.
const LONGEST: f64 = 30.0;

impl StatusPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let checked = html! {
            @match &self.checked {
                Some(at) => { "no findings at " (time(Some(at))) },
                None => { span.note { "not complete yet" } },
            }
        };
        let content = html! {
            (facts(&[
                ("State", html! { (line(&self.state)) }),
                ("Version", html! { (line(&self.version)) }),
                ("Waiting statements", html! { (self.queued) }),
                ("Entries not searchable yet", html! { (self.unindexed) }),
                ("Check of the storage", checked),
                ("Limits", html! { a href="/v1/limits" { "as JSON" } }),
            ]))
            h2 { "Latency of registrations" }
            @if self.latencies.iter().all(|row| row.count == 0) {
                p.note { "This process has registered no statement since it started." }
            } @else {
                p.note { "By stage, since this process started: a thick line to the median, a thin one to the 99th percentile." }
                (chart(&self.latencies))
                details {
                    summary { "The same as a list" }
                    ol.rows { @for row in &self.latencies { li { (in_words(row)) } } }
                }
            }
        };
        frame.html("Status", "/ui/status", &content)
    }
}

fn chart(rows: &[LatencyRow]) -> Markup {
    let bottom = ROW * rows.len() as f64;
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (bottom + BOTTOM) } width=(WIDTH) height=(bottom + BOTTOM) role="img"
            aria-label="Median and 99th percentile of the time in each stage of a registration" {
            @for (seconds, name) in DECADES {
                line.grid x1=(x(seconds)) y1="0" x2=(x(seconds)) y2=(bottom) {}
                text x=(x(seconds)) y=(bottom + 16.0) { (name) }
            }
            @for (at, row) in rows.iter().enumerate() {
                @let y = ROW * (at as f64 + 0.5);
                text x="0" y=(y + 4.0) { (line(&row.stage)) }
                @if row.count > 0 {
                    line.thin x1=(LEFT) y1=(y) x2=(x(row.p99.unwrap_or(LONGEST))) y2=(y) {}
                    line.thick x1=(LEFT) y1=(y) x2=(x(row.median.unwrap_or(LONGEST))) y2=(y) {}
                }
            }
        }
    }
}

/// The place of a duration on the logarithmic axis, to a tenth of a unit.
fn x(seconds: f64) -> f64 {
    let first = DECADES[0].0;
    let part = (seconds.clamp(first, LONGEST) / first).log10() / (LONGEST / first).log10();
    ((LEFT + part * (WIDTH - LEFT)) * 10.0).round() / 10.0
}

fn in_words(row: &LatencyRow) -> String {
    let bound = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("at most {} ms", seconds * 1000.0),
        None => format!("more than {LONGEST} s"),
    };
    match row.count {
        0 => format!("{}: none", row.stage),
        count => format!(
            "{}: {}, half of them {}, 99 % {}",
            row.stage,
            counted(count, "registration", "registrations"),
            bound(row.median),
            bound(row.p99)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_is_logarithmic_and_ends_with_the_chart() {
        assert_eq!((x(0.0), x(1e-4)), (LEFT, LEFT));
        assert_eq!((x(LONGEST), x(1e9)), (WIDTH, WIDTH));
        let decade = x(1e-2) - x(1e-3);
        assert!(((x(0.1) - x(1e-2)) - decade).abs() <= 0.2);
    }

    #[test]
    fn a_stage_has_a_line_to_its_median_and_one_to_its_99th_percentile() {
        let row =
            |stage: &str, count, median, p99| LatencyRow { stage: stage.to_owned(), count, median, p99 };
        let stages = [
            row("policy", 3, Some(1e-3), Some(0.1)),
            row("<pin>", 0, None, None),
            row("commit", 1, None, None),
        ];
        let svg = chart(&stages).into_string();
        let drawn = |class: &str, y: u64, seconds: f64| {
            format!("<line class=\"{class}\" x1=\"72\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\"></line>", x(seconds))
        };
        for line in [
            drawn("thick", 14, 1e-3),
            drawn("thin", 14, 0.1),
            drawn("thick", 70, LONGEST),
            drawn("thin", 70, LONGEST),
        ] {
            assert!(svg.contains(&line), "no {line}: {svg}");
        }
        assert_eq!(
            svg.matches("<line").count(),
            DECADES.len() + 4,
            "a stage without registrations has none: {svg}"
        );
        assert!(svg.contains("&lt;pin&gt;"), "{svg}");
    }

    #[test]
    fn a_time_beyond_the_last_bucket_is_said_to_be_longer() {
        let row = LatencyRow { stage: "commit".to_owned(), count: 3, median: Some(0.0025), p99: None };
        assert_eq!(
            in_words(&row),
            "commit: 3 registrations, half of them at most 2.5 ms, 99 % more than 30 s"
        );
    }
}
