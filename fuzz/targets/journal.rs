//! Pages of machines' journals, journals as files, and requests for pieces of them, from anybody.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_journal::Page;
use tenure_package::{Journal, JournalRequest};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(page) = Page::parse(bytes) {
        let again = page.to_bytes().expect("a page that parses can be written");
        assert_eq!(again, bytes, "a page has one encoding");
    }
    let _ = Journal::parse(bytes);
    let _ = JournalRequest::from_bytes(bytes);
});
