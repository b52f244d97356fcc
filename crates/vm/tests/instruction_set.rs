//! The page of the instruction set is made from the instruction set.
//!
//! `TENURE_BLESS=1 cargo test -p tenure-vm --test instruction_set` writes it.

use std::fmt::Write;

use tenure_vm::instruction_set;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vm-instructions.md");

const HEAD: &str = "\
# The image's instruction set

Generated from `crates/vm/build/isa.rs` by the test `instruction_set`; don't edit.

An instruction is a row of 16-bit units: the opcode times four, then its operands. An instruction costs as
many units of fuel as it is long, and a surcharge where it takes longer than others of its length. Forms in a
mnemonic: `s` slot, `a` accumulator, `i` immediate, `z` zero; sources first, then the result. Operands: `s` slot read, `d` slot written, `i` `j` `k` constants of 16, 32
and 64 bits, `t` `T` displacements of 16 and 32 bits, `r` memory offset plus size minus one, `x` index,
`f` distance to the callee's frame, `l` slot of the return link, `n` number of displacements that follow.

| opcode | mnemonic | operands | units | surcharge |
|---:|---|---|---:|---:|
";

#[test]
fn page_is_current() {
    let mut page = String::from(HEAD);
    for (opcode, (mnemonic, operands, units, surcharge)) in instruction_set().enumerate() {
        let _ = writeln!(page, "| {opcode} | `{mnemonic}` | {operands} | {units} | {surcharge} |");
    }
    if std::env::var_os("TENURE_BLESS").is_some() {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        found == page,
        "docs/vm-instructions.md is out of date: run this test with TENURE_BLESS=1"
    );
}
