//! Which instructions a handler looks for behind its own, to go on with them without a jump.
//!
//! The rows of `sequences.txt` were measured: `cargo run --release -p tenure-vm --example trace --
//! sequences GUEST.wasm...` prints them. They are made on machines of 64 bits alone, where code may be
//! long and jumps take most of the time; images don't know of them, and neither does fuel.

use crate::{function_name, isa::Instruction};

const SEQUENCES: &str = include_str!("sequences.txt");

/// Of each instruction the followers that its handler looks for, as `go_on!` takes them.
pub(crate) fn followers(instructions: &[Instruction]) -> Vec<String> {
    let rows: Vec<Vec<&str>> = SEQUENCES.lines().map(|row| row.split(' ').collect()).collect();
    let of = |instruction: &Instruction| {
        let begins = rows.iter().filter(|row| row[0] == instruction.mnemonic);
        let rests: Vec<&[&str]> = begins.map(|row| &row[1..]).collect();
        branches(instructions, &rests)
    };
    instructions.iter().map(of).collect()
}

/// `OPCODE_UNIT FUNCTION (ITS FOLLOWERS)` for each first of the rows.
fn branches(instructions: &[Instruction], rows: &[&[&str]]) -> String {
    let mut text = String::new();
    let mut seen = Vec::new();
    for first in rows.iter().filter_map(|row| row.first()) {
        if seen.contains(&first) {
            continue;
        }
        seen.push(first);
        let opcode = instructions.iter().position(|instruction| instruction.mnemonic == **first);
        let opcode = opcode.unwrap_or_else(|| panic!("sequences.txt: no instruction {first}"));
        let rests: Vec<&[&str]> =
            rows.iter().filter(|row| row.first() == Some(first)).map(|row| &row[1..]).collect();
        let its = branches(instructions, &rests);
        // `isa::OPCODE_SCALE` times the opcode, as it stands in an image.
        text += &format!("{} {} ({its}) ", opcode * 4, function_name(first));
    }
    text
}
