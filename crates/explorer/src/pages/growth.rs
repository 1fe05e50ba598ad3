//! The size of the tree over time, as a chart and as a table.

use display::counted;
use maud::{Markup, html};

use crate::layout::{PageFrame, time};

/// Sizes of the tree over time.
#[derive(Clone, Debug, Default)]
pub struct GrowthPage {
    /// Heads of the tree in the order of their times.
    pub points: Vec<GrowthPoint>,
}

/// A head of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowthPoint {
    /// Time of the commit in Unix seconds.
    pub seconds: u64,
    /// The same time as RFC 3339.
    pub at: Option<String>,
    /// Leaves of the tree.
    pub size: u64,
}

/// Width of the chart in its own units.
const WIDTH: f64 = 640.0;
/// Height of the chart in its own units.
const HEIGHT: f64 = 240.0;
/// Room around the curve.
const MARGIN: f64 = 24.0;

impl GrowthPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            @match (self.points.first(), self.points.last()) {
                (Some(first), Some(last)) if self.points.len() > 1 => {
                    (self.chart(first, last))
                    p.note { "From " (time(first.at.as_deref())) " to " (time(last.at.as_deref())) "." }
                },
                _ => { p.note { "The log has too few checkpoints for a chart." } },
            }
            details {
                summary { "The same as a list" }
                ol.rows { @for point in &self.points { li { (time(point.at.as_deref())) ": " (point.size) } } }
            }
        };
        frame.html("Growth", "/ui/growth", &content)
    }

    fn chart(&self, first: &GrowthPoint, last: &GrowthPoint) -> Markup {
        let title =
            format!("The tree grew from {} to {}", first.size, counted(last.size, "entry", "entries"));
        let (left, bottom) = (MARGIN, HEIGHT - MARGIN);
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img" aria-label=(title) {
                line.axis x1=(left) y1=(bottom) x2=(WIDTH - MARGIN) y2=(bottom) {}
                line.axis x1=(left) y1=(MARGIN) x2=(left) y2=(bottom) {}
                polyline.curve points=(self.curve(first, last)) {}
                text x=(left) y=(MARGIN - 8.0) { (counted(last.size, "entry", "entries")) }
            }
        }
    }

    /// The points of the curve: a line that steps up at each head.
    fn curve(&self, first: &GrowthPoint, last: &GrowthPoint) -> String {
        let duration = last.seconds.saturating_sub(first.seconds).max(1) as f64;
        let x = |point: &GrowthPoint| {
            let passed = point.seconds.saturating_sub(first.seconds) as f64 / duration;
            MARGIN + passed.min(1.0) * (WIDTH - 2.0 * MARGIN)
        };
        let y = |size: u64| HEIGHT - MARGIN - size as f64 / last.size.max(1) as f64 * (HEIGHT - 2.0 * MARGIN);
        let mut curve = String::new();
        let mut before = first.size;
        for point in &self.points {
            curve.push_str(&format!(
                "{:.1},{:.1} {:.1},{:.1} ",
                x(point),
                y(before),
                x(point),
                y(point.size)
            ));
            before = point.size;
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_steps_from_the_lower_left_to_the_upper_right() {
        let point = |seconds, size| GrowthPoint { seconds, at: None, size };
        let growth = GrowthPage { points: vec![point(100, 0), point(150, 5), point(200, 10)] };
        let curve = growth.curve(&growth.points[0], &growth.points[2]);
        assert!(curve.starts_with("24.0,216.0 24.0,216.0 320.0,216.0 320.0,120.0 "), "{curve}");
        assert!(curve.trim_end().ends_with("616.0,24.0"), "{curve}");
    }
}
