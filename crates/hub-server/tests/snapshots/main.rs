//! Each page of the hub, and each error of its API, as the files in `expected` have them.
//!
//! `UPDATE_EXPECT=1 cargo test -p tenure-hub-server --test snapshots` writes the files.

#[path = "../world/mod.rs"]
mod world;

mod errors;
mod fleet;
mod pages;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use expect_test::expect_file;

/// The folder of the files.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/expected")
}

/// Compares each text with its file.
fn check(texts: &[(String, String)]) {
    for (name, text) in texts {
        expect_file![folder().join(name)].assert_eq(text);
    }
}

#[test]
fn every_file_is_of_a_page_or_of_the_errors() {
    let pages = pages::PAGES.iter().map(|(name, ..)| format!("{name}.html"));
    let known: BTreeSet<String> = pages.chain(["errors.txt".to_string()]).collect();
    let files = std::fs::read_dir(folder()).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), known);
}
