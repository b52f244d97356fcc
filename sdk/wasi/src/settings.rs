//! The settings of the project's `tenure.toml` for its program: arguments, variables, folders.

use crate::layout;

#[link(wasm_import_module = "merger")]
unsafe extern "C" {
    /// Where the settings are.
    safe fn settings() -> u32;
}

/// A word of the settings.
pub(crate) fn word(index: u32) -> u32 {
    let at = (settings() + 4 * index) as *const u32;
    // SAFETY: `tenure build` put them there, aligned, and nothing writes to them.
    unsafe { at.read() }
}

/// Whether a flag is set.
pub(crate) fn has(flag: u32) -> bool {
    word(layout::WORD_FLAGS) & flag != 0
}

/// Texts that stand one behind the other, each with a zero byte at its end.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    at: u32,
    pub(crate) count: u32,
}

/// The arguments.
pub(crate) fn arguments() -> Texts {
    let at = settings() + 4 * layout::SETTINGS_WORDS;
    Texts { at, count: word(layout::WORD_ARGUMENTS) }
}

/// The variables.
pub(crate) fn variables() -> Texts {
    let at = arguments().at + word(layout::WORD_ARGUMENT_BYTES);
    Texts { at, count: word(layout::WORD_VARIABLES) }
}

/// The folder of that number, as the program calls it, and as the tree does.
pub(crate) fn folder(number: u32) -> Option<(&'static [u8], &'static [u8])> {
    let at = variables().at + word(layout::WORD_VARIABLE_BYTES);
    let mut texts = Texts { at, count: 2 * word(layout::WORD_FOLDERS) };
    for _ in 0..2 * number {
        texts.next()?;
    }
    Some((texts.next()?, texts.next()?))
}

impl Iterator for Texts {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        self.count = self.count.checked_sub(1)?;
        let start = self.at as *const u8;
        let mut length = 0;
        // SAFETY: `tenure build` put a zero byte at the end of each text, and nothing writes to them.
        let text = unsafe {
            while start.add(length).read() != 0 {
                length += 1;
            }
            core::slice::from_raw_parts(start, length)
        };
        self.at += length as u32 + 1;
        Some(text)
    }
}
