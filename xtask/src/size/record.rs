//! Writing measured figures over the recorded ones in a `board.toml`, line by line: comments and all else stay.
//!
//! A figure has a line of its own, under its board's name in the table `budget.recorded` or `cost.recorded` that
//! follows the budget or cost it belongs to.

use super::gate::{Quantity, Row};
use crate::digits::grouped;

/// The text of a `board.toml` with the figures of `rows` in the place of those that it has for their board.
pub(super) fn rewritten(text: &str, rows: &[Row]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let (board, name) = (row.board, row.name.as_str());
        if done.contains(&(board, name)) {
            continue;
        }
        done.push((board, name));
        let ours: Vec<_> =
            rows.iter().filter(|row| row.board == board && row.name == name).collect();
        write(&mut lines, board, name, &ours);
    }
    lines.join("\n") + "\n"
}

/// Writes the line of one board under one budget or cost; what the file doesn't have stays out.
fn write(lines: &mut Vec<String>, board: &str, name: &str, rows: &[&Row]) {
    let named = format!("name = \"{name}\"");
    let Some(owner) = lines.iter().position(|line| without_comment(line).trim() == named) else {
        return;
    };
    let is_header = |line: &String| line.starts_with("[[");
    let end = lines[owner..].iter().position(is_header).map_or(lines.len(), |at| owner + at);
    let is_table = |line: &String| without_comment(line).trim().ends_with(".recorded]");
    let Some(table) = lines[owner..end].iter().position(is_table).map(|at| owner + at) else {
        return;
    };
    let line = format!("{board} = {{ {} }}", fields(rows));
    let is_ours = |line: &String| {
        line.split_once('=').is_some_and(|(key, _)| key.trim().trim_matches('"') == board)
    };
    match lines[table..end].iter().position(is_ours).map(|at| table + at) {
        Some(at) => {
            let comment = &lines[at][without_comment(&lines[at]).trim_end().len()..];
            lines[at] = line + comment;
        }
        None => lines.insert(table + 1, line),
    }
}

fn fields(rows: &[&Row]) -> String {
    let field = |row: &&Row| {
        let key = match row.quantity {
            Quantity::Flash => "flash_bytes",
            Quantity::Ram => "ram_bytes",
            Quantity::Instructions => "instructions",
        };
        format!("{key} = {}", grouped(row.measured, '_'))
    };
    rows.iter().map(field).collect::<Vec<_>>().join(", ")
}

/// A line without its comment. No string in a `board.toml` has a `#`.
fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
# The board.

[[budget]]
name = \"firmware\" # All of it.
# The slot.
flash_bytes_max = 2_000

[budget.recorded]
attic = { flash_bytes = 1_000, ram_bytes = 7 } # Why it grew.
attic0 = { flash_bytes = 1_100, ram_bytes = 8 }

[[cost]]
name = \"call\"

[cost.recorded]
# Nothing yet.
";

    fn row(board: &'static str, name: &str, quantity: Quantity, measured: u64) -> Row {
        Row { board, name: name.to_owned(), quantity, measured, recorded: None, limit: None }
    }

    #[test]
    fn recorded_figures_change_and_comments_and_other_boards_stay() {
        let rows = [
            row("attic", "firmware", Quantity::Flash, 1_234_567),
            row("attic", "firmware", Quantity::Ram, 999),
            row("attic", "call", Quantity::Instructions, 147),
        ];
        let expected = BEFORE
            .replace(
                "flash_bytes = 1_000, ram_bytes = 7",
                "flash_bytes = 1_234_567, ram_bytes = 999",
            )
            .replace("[cost.recorded]\n", "[cost.recorded]\nattic = { instructions = 147 }\n");
        let after = rewritten(BEFORE, &rows);
        assert_eq!(after, expected);
        assert_eq!(rewritten(&after, &rows), after);
    }

    #[test]
    fn a_name_that_the_file_does_not_have_changes_nothing() {
        assert_eq!(rewritten(BEFORE, &[row("attic", "turn", Quantity::Ram, 1)]), BEFORE);
    }
}
