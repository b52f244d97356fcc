use super::*;

const SOURCE: &str = "pub fn keep() {}\n#[test]\nfn it_is_kept() {}\nfn no_test() {}\n";

/// The faults of an RFC with these entries and one section of `count` requirements.
fn faults_of(count: usize, entries: &str) -> Vec<String> {
    faults_in(&format!("'4.1' = {count}"), entries)
}

fn faults_in(sections: &str, entries: &str) -> Vec<String> {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("code.rs"), SOURCE).expect("a file");
    let text = format!("rfc = 1\ntitle = 'One'\n{entries}\n[sections]\n{sections}\n");
    let rfc: Rfc = toml::from_str(&text).expect("a file of clauses");
    rfc.faults(&mut Sources::new(root.path()))
}

fn entry(number: usize, answer: &str) -> String {
    let fields = format!("section = '4.1', number = {number}, side = 'both', says = 'it is so'");
    if answer.is_empty() { format!("{{ {fields} }}") } else { format!("{{ {fields}, {answer} }}") }
}

fn entries(answers: &[&str]) -> String {
    let all = answers.iter().enumerate().map(|(index, answer)| entry(index + 1, answer));
    format!("requirement = [{}]", all.collect::<Vec<_>>().join(", "))
}

#[test]
fn entries_with_code_test_or_reason_are_complete() {
    let good = entries(&[
        "code = 'code.rs#keep', test = ['code.rs#it_is_kept']",
        "code = 'code.rs#keep'",
        "none = 'no middlebox'",
        "open = 'nobody looks'",
    ]);
    assert_eq!(faults_of(4, &good), Vec::<String>::new());
}

#[test]
fn section_with_a_missing_a_second_or_a_surplus_entry_is_a_fault() {
    let two = entries(&["none = 'a'", "none = 'b'"]);
    assert_eq!(faults_of(3, &two), ["RFC 1 §4.1: 2 entries of 3"]);
    assert_eq!(faults_of(1, &two), ["RFC 1 §4.1 (2): the section has 1 requirements"]);
    let twice = format!("requirement = [{0}, {0}]", entry(1, "none = 'a'"));
    assert_eq!(faults_of(1, &twice), ["RFC 1 §4.1 (1) has two entries"]);
    let nowhere = entries(&["none = 'a'"]);
    let faults = faults_in("'5' = 1", &nowhere);
    assert_eq!(
        faults,
        ["RFC 1 §4.1 (1): the section has 0 requirements", "RFC 1 §5: 0 entries of 1"]
    );
}

#[test]
fn section_that_is_left_out_has_a_count_and_no_entries() {
    let entries = format!("{}\n[left_out]\n'5' = 'no such thing'", entries(&["none = 'a'"]));
    assert_eq!(faults_in("'4.1' = 1\n'5' = 7", &entries), Vec::<String>::new());
    let faults = faults_in("'4.1' = 1", &entries);
    assert_eq!(faults, ["RFC 1 §5 is left out, and unknown"]);
    let faults = faults_in("'4.1' = 1\n'5' = 7", &entries.replace("'5'", "'4.1'"));
    assert_eq!(faults, ["RFC 1 §4.1 is left out, and has entries", "RFC 1 §5: 0 entries of 7"]);
}

#[test]
fn entry_without_an_answer_or_with_two_is_a_fault() {
    for (answer, fault) in [
        ("", "has neither code, nor `none`, nor `open`"),
        ("code = 'code.rs#keep', open = 'a'", "has more than one of code, `none` and `open`"),
        ("none = 'a', open = 'b'", "has more than one of code, `none` and `open`"),
        ("none = 'a', test = 'code.rs#it_is_kept'", "has a test and no code"),
        ("none = ' '", "has an empty text"),
    ] {
        let faults = faults_of(1, &entries(&[answer]));
        assert_eq!(faults, [format!("RFC 1 §4.1 (1): {fault}")], "{answer}");
    }
}

#[test]
fn place_that_is_not_in_the_sources_is_a_fault() {
    for (answer, fault) in [
        ("code = 'code.rs'", "code.rs isn't `FILE#NAME`"),
        ("code = 'other.rs#keep'", "there is no file other.rs"),
        ("code = 'code.rs#kept'", "code.rs#kept declares no such item"),
        ("code = 'code.rs#keep', test = 'code.rs#no_test'", "code.rs#no_test has no such test"),
        ("code = 'code.rs#keep', test = 'code.rs#is_kept'", "code.rs#is_kept has no such test"),
    ] {
        let faults = faults_of(1, &entries(&[answer]));
        assert_eq!(faults, [format!("RFC 1 §4.1 (1): {fault}")], "{answer}");
    }
}

#[test]
fn table_counts_each_requirement_once() {
    let answers =
        ["code = 'a#b', test = 'a#c'", "code = 'a#b'", "none = 'a'", "none = 'a'", "open = 'a'"];
    let text = format!("rfc = 1\ntitle = 'One'\n{}\n[sections]\n'4.1' = 5", entries(&answers));
    let rfc: Rfc = toml::from_str(&text).expect("a file of clauses");
    let table = table(&[rfc]);
    let line = table.lines().nth(1).expect("a line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["1", "One", "5", "1", "1", "2", "1"]);
}
