//! A flame graph (Gregg, "The Flame Graph", CACM 59(6), 2016) as a picture that needs no script.
//!
//! ```text
//!   ┌──────────────────────── all ────────────────────────┐
//!   ├──────────── thermostat ────────────┬──── panel ─────┤   as wide as its part of all,
//!   ├────── read ──────┬──── show ───────┼──── http ──────┤   above what it called
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::terminal::output::escape;

/// The picture's width, and a row's height, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// What is narrower isn't drawn, and what is narrower than its text has a part of it.
const WIDTH_MIN: f64 = 0.2;
const LETTER: f64 = 6.6;
/// Rows beyond this aren't drawn: a program that calls itself makes thousands.
const ROWS_MAX: usize = 256;

/// Something that took fuel, and what it called.
#[derive(Default)]
pub(super) struct Flame {
    units: u64,
    called: BTreeMap<String, Flame>,
}

impl Flame {
    /// Adds what was spent where these functions led, outermost first.
    pub(super) fn add(&mut self, stack: impl Iterator<Item = String>, units: u64) {
        self.units += units;
        let mut flame = self;
        for function in stack.take(ROWS_MAX) {
            flame = flame.called.entry(function).or_default();
            flame.units += units;
        }
    }

    /// The picture.
    pub(super) fn to_svg(&self) -> String {
        let height = self.rows() as f64 * ROW;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"monospace\" font-size=\"11\">\n"
        );
        self.draw("all", (0.0, 0), self.units.max(1), &mut svg);
        svg + "</svg>\n"
    }

    fn rows(&self) -> usize {
        1 + self.called.values().map(Flame::rows).max().unwrap_or(0)
    }

    /// Draws it from `left` on in a row, and below it what it called; `all` units are as wide as the picture.
    fn draw(&self, name: &str, (left, row): (f64, usize), all: u64, svg: &mut String) {
        let width = self.units as f64 / all as f64 * WIDTH;
        if width < WIDTH_MIN {
            return;
        }
        let (top, units) = (row as f64 * ROW, self.units);
        let part = units as f64 * 100.0 / all as f64;
        let letters = ((width - 6.0) / LETTER) as usize;
        let text: String = name.chars().take(if letters < 3 { 0 } else { letters }).collect();
        let (name, text, hue) = (escape(name), escape(&text), hue(name));
        // Writing to a string can't fail.
        let _ = writeln!(
            svg,
            "<g><title>{name}: {units} units, {part:.2} %</title>\
             <rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{ROW}\" \
             fill=\"hsl({hue},75%,70%)\" stroke=\"white\" stroke-width=\".5\"/>\
             <text x=\"{:.2}\" y=\"{}\">{text}</text></g>",
            left + 3.0,
            top + 13.0,
        );
        let mut left = left;
        for (name, called) in &self.called {
            called.draw(name, (left, row + 1), all, svg);
            left += called.units as f64 / all as f64 * WIDTH;
        }
    }
}

/// A warm colour's hue, in degrees, the same for each function wherever it stands.
fn hue(name: &str) -> u32 {
    let sum = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum % 55
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str]) -> impl Iterator<Item = String> {
        functions.iter().map(ToString::to_string).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn what_was_called_is_as_wide_as_its_part_and_stands_below_its_caller() {
        let mut flame = Flame::default();
        flame.add(stack(&["read", "parse"]), 30);
        flame.add(stack(&["read"]), 10);
        flame.add(stack(&["show"]), 60);
        let svg = flame.to_svg();
        assert!(svg.contains("viewBox=\"0 0 1200 54\""), "{svg}");
        assert!(svg.contains("<title>read: 40 units, 40.00 %</title>"), "{svg}");
        let parse = svg.lines().find(|line| line.contains("parse: 30 units")).unwrap();
        assert!(parse.contains("x=\"0.00\" y=\"36\" width=\"360.00\""), "{parse}");
        let show = svg.lines().find(|line| line.contains("show: 60 units")).unwrap();
        assert!(show.contains("x=\"480.00\" y=\"18\" width=\"720.00\""), "{show}");
    }

    #[test]
    fn names_are_text_and_what_calls_itself_for_ever_is_drawn_as_far_as_it_fits() {
        let mut flame = Flame::default();
        flame.add(stack(&["Vec<T>::push & \"more\""]), 1);
        flame.add(stack(&["again"; 100_000]), 1);
        let svg = flame.to_svg();
        assert!(svg.contains("<title>Vec&lt;T&gt;::push &amp; \"more\": 1 units"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2 + ROWS_MAX);
        assert_eq!(Flame::default().to_svg().matches("<rect").count(), 0);
    }
}
