//! Helpers of several tests.
#![allow(dead_code, unused_imports)]

pub(crate) use tenure_hal::simulated::Random;

/// The binary of a module in the text format.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    let buffer = wast::parser::ParseBuffer::new(text).expect("tokens");
    let mut module = wast::parser::parse::<wast::Wat<'_>>(&buffer).expect("a module");
    module.encode().expect("names resolve")
}
