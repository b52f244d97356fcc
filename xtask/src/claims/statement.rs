//! A statement in the text of a page, and the numbers in it.

use std::ops::Range;

use crate::digits::grouped;

/// The numbers of a statement, in their order.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    numbers: Vec<Number<'a>>,
}

/// A number as a page writes it: `1,024` or `12.5`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
    place: Range<usize>,
}

impl<'a> Statement<'a> {
    /// The first place where `page` says `pattern`, in which `{}` stands for a number.
    pub(super) fn find(page: &'a str, pattern: &str) -> Option<Self> {
        let pieces: Vec<&str> = pattern.split("{}").collect();
        let starts = page.char_indices().map(|(at, _)| at);
        let numbers = starts.filter_map(|start| numbers_at(page, start, &pieces)).next()?;
        Some(Self { numbers })
    }

    /// The numbers, by their value.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.numbers.iter().filter_map(Number::value)
    }

    /// The numbers that are further from what was derived than `tolerance`, each with that, written in its way.
    pub(super) fn differing(&self, derived: &[f64], tolerance: f64) -> Vec<(Number<'a>, String)> {
        let both = self.numbers.iter().zip(derived);
        let written = both.map(|(number, derived)| (number, *derived, number.written(*derived)));
        let differing = written.filter(|(number, derived, written)| {
            let distance = number.value().map_or(f64::INFINITY, |value| (value - derived).abs());
            number.text != written && distance > tolerance * derived.abs()
        });
        differing.map(|(number, _, written)| (number.clone(), written)).collect()
    }
}

impl Number<'_> {
    fn value(&self) -> Option<f64> {
        self.text.replace(',', "").parse().ok()
    }

    /// `value` with as many decimals as this number has.
    fn written(&self, value: f64) -> String {
        let decimals = self.text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let text = format!("{value:.decimals$}");
        let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
        let whole = match self.text.starts_with('.') {
            true => whole.trim_start_matches('0').to_owned(),
            false => grouped(whole.parse().unwrap_or_default(), ','),
        };
        whole + rest
    }
}

/// The numbers between `pieces` if `page` has these at `start`, with a number between each and the next.
fn numbers_at<'a>(page: &'a str, start: usize, pieces: &[&str]) -> Option<Vec<Number<'a>>> {
    let (first, rest) = pieces.split_first()?;
    let mut at = end_of_words(page, start, first)?;
    let mut numbers = Vec::new();
    for piece in rest {
        let length = page[at..].find(|sign: char| !(sign.is_ascii_digit() || ".,".contains(sign)));
        let text = page[at..at + length.unwrap_or(page.len() - at)].trim_end_matches(['.', ',']);
        if !text.contains(|sign: char| sign.is_ascii_digit()) {
            return None;
        }
        let place = at..at + text.len();
        numbers.push(Number { text, line: page[..at].lines().count().max(1), place });
        at = end_of_words(page, at + text.len(), piece)?;
    }
    Some(numbers)
}

/// Where `words` end if `page` has them at `at`; white space is white space, and in a quoted line `>` is too.
fn end_of_words(page: &str, at: usize, words: &str) -> Option<usize> {
    let mut at = at;
    let mut signs = words.chars().peekable();
    while let Some(sign) = signs.next() {
        let rest = page.get(at..)?;
        if sign.is_whitespace() {
            while signs.next_if(|next| next.is_whitespace()).is_some() {}
            let trimmed = rest.trim_start();
            if trimmed.len() == rest.len() {
                return None;
            }
            at += rest.len() - trimmed.len();
        } else {
            at += rest.starts_with(sign).then_some(sign.len_utf8())?;
        }
    }
    Some(at)
}

/// `page` with numbers of it written anew.
pub(super) fn replaced(page: &str, numbers: &[(Number<'_>, String)]) -> String {
    let mut text = page.to_owned();
    // From the end, so that places before stay.
    for (number, new) in numbers.iter().rev() {
        text.replace_range(number.place.clone(), new);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Limits\n\nA hub carries 10,000\ndevices, each for .5 s. It ends after 30 minutes.\n";

    fn differing<'a>(pattern: &str, derived: &[f64]) -> Vec<(Number<'a>, String)> {
        Statement::find(PAGE, pattern).unwrap().differing(derived, 0.0)
    }

    #[test]
    fn statement_is_found_across_lines_with_its_numbers() {
        let pattern = "carries {} devices, each for {} s. It ends after {} minutes.";
        let statement = Statement::find(PAGE, pattern).unwrap();
        assert_eq!(statement.values().collect::<Vec<_>>(), [10_000.0, 0.5, 30.0]);
        assert_eq!(statement.numbers[0].line, 3);
        assert!(differing(pattern, &[10_000.0, 0.5, 30.0]).is_empty());
    }

    #[test]
    fn number_that_differs_is_written_in_the_pages_way() {
        let pattern = "carries {} devices, each for {} s";
        let differing = differing(pattern, &[1_234_567.0, 0.25]);
        let written: Vec<_> = differing.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(written, ["1,234,567", ".2"]);
        assert_eq!(
            replaced(PAGE, &differing),
            PAGE.replace("10,000", "1,234,567").replace(".5 s", ".2 s")
        );
    }

    #[test]
    fn number_within_the_tolerance_stays() {
        let statement = Statement::find(PAGE, "after {} minutes").unwrap();
        assert!(statement.differing(&[30.2], 0.01).is_empty());
        assert_eq!(statement.differing(&[31.0], 0.01).len(), 1);
    }

    #[test]
    fn statement_that_the_page_does_not_make_is_not_found() {
        for pattern in
            ["carries {} hubs", "carries ten devices", "ends after{}minutes", "Limits {}"]
        {
            assert!(Statement::find(PAGE, pattern).is_none(), "{pattern}");
        }
    }
}
