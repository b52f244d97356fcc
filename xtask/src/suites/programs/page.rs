//! The table of programs in docs/programs.md: what each is, where it is from, and what it took.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::table::Program;
use super::verdict::{Figures, OnBoard, Outcome};
use crate::digits::grouped;
use crate::files;

const PAGE: &str = "docs/programs.md";
/// The lines around the table.
const BEGIN: &str = "<!-- Written by `cargo xtask suites programs --write`. -->\n";
const END: &str = "<!-- The end of what it wrote. -->\n";
const HEAD: &str = "| program | what it is | from | licence | code | image | memory | fuel | on the board |\n\
     |---|---|---|---|--:|--:|--:|--:|--:|\n";

/// The table of programs, in Markdown, and behind it the reasons of those that failed.
pub(super) fn table(programs: &[Program], outcomes: &[Outcome]) -> String {
    let mut text = HEAD.to_owned();
    let mut failures = String::new();
    for (program, outcome) in programs.iter().zip(outcomes) {
        let Program { name, kind, registry, package, version, licence, .. } = program;
        let figures = match outcome {
            Outcome::Same(figures) => cells(figures),
            Outcome::Skipped(_) => "not tried | | | |".to_owned(),
            Outcome::Failed(error) => {
                let first = error.lines().next().unwrap_or_default();
                let reason = program.fails.as_deref().unwrap_or(first).replace('|', "\\|");
                let _ = writeln!(failures, "| `{name}` | {reason} |");
                "fails | | | |".to_owned()
            }
        };
        // Writing to a text can't fail.
        let _ = writeln!(
            text,
            "| `{name}` | {kind} | {registry}: {package} {version} | {licence} | {figures} |"
        );
    }
    if !failures.is_empty() {
        let _ = write!(text, "\n| fails | reason |\n|---|---|\n{failures}");
    }
    text
}

fn cells(figures: &Figures) -> String {
    let Figures { code_bytes, image_bytes, memory_bytes, fuel, board } = figures;
    let amounts = [code_bytes, image_bytes, memory_bytes, fuel].map(|&it| grouped(it, ','));
    let board = match board {
        OnBoard::NotTried => "–".to_owned(),
        OnBoard::Same { memory_bytes } => grouped(*memory_bytes, ','),
        OnBoard::MoreFlash => "flash".to_owned(),
        OnBoard::MoreMemory => "memory".to_owned(),
        OnBoard::Fails(_) => "stops".to_owned(),
    };
    format!("{} | {board}", amounts.join(" | "))
}

/// Writes the table to its place in the page.
///
/// # Errors
/// One of them was skipped: the table is of all.
pub(super) fn write(root: &Path, programs: &[Program], outcomes: &[Outcome]) -> Result<()> {
    let is_whole = !outcomes.iter().any(|it| matches!(it, Outcome::Skipped(_)));
    ensure!(is_whole, "{PAGE} isn't written while programs are skipped");
    let path = root.join(PAGE);
    let page = replaced(&files::read(&path)?, &table(programs, outcomes))?;
    fs::write(&path, page).with_context(|| format!("can't write {PAGE}"))
}

/// The page with another table.
fn replaced(page: &str, table: &str) -> Result<String> {
    let lost = || format!("{PAGE} has lost the lines around its table");
    let (before, rest) = page.split_once(BEGIN).with_context(lost)?;
    let (_, behind) = rest.split_once(END).with_context(lost)?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::program;
    use super::super::verdict::tests::figures;
    use super::*;

    #[test]
    fn a_row_has_the_figures_or_the_program_is_listed_with_its_reason() {
        let programs = ["", "fails = \"it needs a terminal\"", "", ""]
            .map(|lines| program(&format!("main = \"a.rs\"\n{lines}")));
        let board = OnBoard::Same { memory_bytes: 1_234 };
        let figures = Figures { code_bytes: 1_000, fuel: 4_567, board, ..figures() };
        let (same, skipped) = (Outcome::Same(figures), Outcome::Skipped("no clang".into()));
        let failed = Outcome::Failed("a | b\nc".into());
        let table = table(&programs, &[same, failed.clone(), skipped.clone(), failed]);
        let row =
            "| `sums` | sums | crates.io: sums 1.2.3 | MIT | 1,000 | 2 | 3 | 4,567 | 1,234 |\n";
        assert!(table.contains(row), "{table}");
        assert!(table.contains("| MIT | fails | | | | |\n"));
        assert!(table.contains("| MIT | not tried | | | | |\n"));
        assert!(write(Path::new("/"), &[], &[skipped]).is_err());
        assert!(table.contains("| `sums` | it needs a terminal |\n"));
        assert!(table.ends_with("| `sums` | a \\| b |\n"), "{table}");
    }

    #[test]
    fn what_keeps_a_program_from_the_board_stands_in_its_row() {
        for (board, cell) in [
            (OnBoard::NotTried, "–"),
            (OnBoard::MoreFlash, "flash"),
            (OnBoard::MoreMemory, "memory"),
            (OnBoard::Fails("no".into()), "stops"),
        ] {
            assert_eq!(cells(&Figures { board, ..figures() }), format!("1 | 2 | 3 | 4 | {cell}"));
        }
    }

    #[test]
    fn table_takes_the_place_of_the_one_before() {
        let page = format!("# Programs\n{BEGIN}\nold\n\n{END}the end\n");
        let written = replaced(&page, "new\n").unwrap();
        assert_eq!(written, format!("# Programs\n{BEGIN}\nnew\n\n{END}the end\n"));
        assert!(replaced("no table", "new").is_err());
    }

    #[test]
    fn page_has_a_place_for_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(replaced(&files::read(&root.join(PAGE)).unwrap(), "").is_ok());
    }
}
