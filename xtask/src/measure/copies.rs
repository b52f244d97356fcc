//! Lines that stand in two places, in runs that are too long to be chance.

use std::collections::HashMap;

use super::source::Source;

/// The shortest run of equal lines that counts, without blank ones, comments and imports.
const RUN: usize = 10;

/// How many lines lie in runs that stand elsewhere, too.
pub(super) fn lines(sources: &[Source]) -> usize {
    let files: Vec<Vec<&str>> = sources.iter().map(|source| telling(&source.lines)).collect();
    let mut places = HashMap::<&[&str], usize>::new();
    for run in files.iter().flat_map(|lines| lines.windows(RUN)) {
        *places.entry(run).or_default() += 1;
    }
    let mut copied = 0;
    for lines in &files {
        let mut marked = vec![false; lines.len()];
        for (start, run) in lines.windows(RUN).enumerate() {
            if places[run] > 1 {
                marked[start..start + RUN].fill(true);
            }
        }
        copied += marked.into_iter().filter(|is_copy| *is_copy).count();
    }
    copied
}

fn telling(lines: &[String]) -> Vec<&str> {
    let trimmed = lines.iter().map(|line| line.trim());
    trimmed
        .filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("use "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_stands_twice_counts_in_both_places() {
        let run: String = (0..RUN).map(|number| format!("    do_this({number});\n")).collect();
        let source = |text: String| Source::new("crates/a/src/b.rs".into(), &text);
        let once = source(format!("fn one() {{\n{run}}}\n"));
        let again = source(format!("fn two() {{\n// The same.\n{run}    more();\n}}\n"));
        assert_eq!(lines(&[source(run.clone())]), 0);
        assert_eq!(lines(&[once, again]), 2 * RUN);
    }
}
