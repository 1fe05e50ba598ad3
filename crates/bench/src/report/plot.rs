//! Horizontal bar plots as SVG.

use maud::{Markup, html};

/// Height of a row in pixels, with the space below it.
const ROW: usize = 24;
/// Width of the labels in pixels.
const LABELS: usize = 260;
/// Width of the longest bar in pixels.
const BARS: usize = 460;
/// Width of the values after the bars in pixels.
const VALUES: usize = 110;
/// Fill colours of the parts of a bar.
const COLOURS: [&str; 3] = ["#2f6f9f", "#d98c3f", "#6b9e5b"];

/// A bar of stacked parts.
pub(super) struct Bar {
    pub(super) label: String,
    /// Length of each part, in the plot's unit.
    pub(super) parts: Vec<f64>,
}

/// Returns a plot of bars. `series` names their parts; a plot with one part per bar has no legend.
pub(super) fn bars(title: &str, unit: &str, series: &[&str], bars: &[Bar]) -> Markup {
    let longest = bars.iter().map(Bar::length).fold(0.0, f64::max);
    let scale = if longest > 0.0 { BARS as f64 / longest } else { 0.0 };
    let (width, height) = (LABELS + BARS + VALUES, (bars.len() + 1) * ROW);
    html! {
        figure {
            figcaption { (title) ", " (unit) @if series.len() > 1 { " — " (legend(series)) } }
            svg width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(title) {
                @for (number, bar) in bars.iter().enumerate() { (drawn(bar, number * ROW, scale)) }
            }
        }
    }
}

fn drawn(bar: &Bar, top: usize, scale: f64) -> Markup {
    let starts = bar.parts.iter().scan(0.0, |end, part| {
        let start = *end;
        *end += part;
        Some((start, *part))
    });
    let base = top + ROW - 8;
    let after = LABELS as f64 + bar.length() * scale + 6.0;
    html! {
        text x=(LABELS - 8) y=(base) text-anchor="end" { (bar.label) }
        @for ((start, part), colour) in starts.zip(COLOURS.iter().cycle()) {
            rect x=(pixels(LABELS as f64 + start * scale)) y=(top + 4) height=(ROW - 8)
                width=(pixels(part * scale)) fill=(colour) {}
        }
        text x=(pixels(after)) y=(base) { (rounded(bar.length())) }
    }
}

fn legend(series: &[&str]) -> Markup {
    html! {
        @for (name, colour) in series.iter().zip(COLOURS) { span style={ "color:" (colour) } { "■ " } (name) " " }
    }
}

fn pixels(length: f64) -> String {
    format!("{length:.1}")
}

/// Formats a value with three significant digits or as a whole number.
pub(super) fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || value == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

impl Bar {
    /// Returns the bar of a single value.
    pub(super) fn of(label: String, value: f64) -> Self {
        Self { label, parts: vec![value] }
    }

    fn length(&self) -> f64 {
        self.parts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_has_the_full_width_and_labels_are_escaped() {
        let drawn =
            bars("rate", "per s", &[], &[Bar::of("a<b".to_owned(), 50.0), Bar::of("c".to_owned(), 100.0)]);
        let svg = drawn.into_string();
        assert!(svg.contains("width=\"460.0\"") && svg.contains("width=\"230.0\""), "{svg}");
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"), "{svg}");
    }

    #[test]
    fn nothing_to_plot_is_an_empty_plot() {
        assert!(bars("rate", "per s", &[], &[]).into_string().contains("<svg"));
    }

    #[test]
    fn values_have_three_digits() {
        for (value, text) in
            [(0.0, "0.00"), (0.01234, "0.0123"), (1.234, "1.23"), (45.67, "45.7"), (1234.5, "1234")]
        {
            assert_eq!(rounded(value), text);
        }
    }
}
