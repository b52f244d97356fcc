//! The compiler's process of these tests: the test program itself, started for one of them.

use std::env;
use std::process::{Command, exit};

use tenure_board_linux::{NativeSpeed, compile_for_a_device};

/// Says that this is that process.
const CHILD: &str = "TENURE_TEST_COMPILES";

/// An engine whose modules are compiled by this test program.
pub(crate) fn engine() -> NativeSpeed {
    NativeSpeed::new(command)
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "compiler::it_compiles_for_its_parent"]).env(CHILD, "true");
    command
}

#[test]
fn it_compiles_for_its_parent() {
    if env::var_os(CHILD).is_some() {
        exit(i32::from(!compile_for_a_device()));
    }
}
