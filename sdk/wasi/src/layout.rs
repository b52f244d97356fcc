//! The places and words that `tenure build` and this module agree on. `crates/cli` compiles this file, too.

/// Bytes of the room for open files, which programs have that use files.
pub(crate) const FILES_BYTES: u32 = 24 * 1024;
/// Bytes of the room for streams, futures and subtasks, which components of WASI 0.3 have.
#[allow(dead_code, reason = "a module for preview 1 alone has none")]
pub(crate) const TASKS_BYTES: u32 = 2048;
/// Bytes of the room for a result that a program writes to its standard output: the longest result of a call.
pub(crate) const RESULT_BYTES: u32 = 8 * 1024;

/// The settings' words, 4 bytes each and little-endian. Behind them come the texts, each with a zero byte at its end:
/// arguments; variables as `NAME=VALUE`; folders, each as the program calls it and as the tree does.
pub(crate) const SETTINGS_WORDS: u32 = 8;
/// Which of the bits below are set.
pub(crate) const WORD_FLAGS: u32 = 0;
/// How many arguments there are.
pub(crate) const WORD_ARGUMENTS: u32 = 1;
/// Bytes of all arguments.
pub(crate) const WORD_ARGUMENT_BYTES: u32 = 2;
/// How many variables there are.
pub(crate) const WORD_VARIABLES: u32 = 3;
/// Bytes of all variables.
pub(crate) const WORD_VARIABLE_BYTES: u32 = 4;
/// How many folders there are.
pub(crate) const WORD_FOLDERS: u32 = 5;
/// Where the room for a result is; 0 without one.
pub(crate) const WORD_RESULT: u32 = 6;

/// The parameter of a call is the program's standard input, and not its last arguments.
pub(crate) const FLAG_PARAMETER_IS_INPUT: u32 = 1;
