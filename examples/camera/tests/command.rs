//! The command as a user calls it.

use std::process::Command;

fn camera(arguments: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tenure-camera")).args(arguments).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn rates_are_printed_with_and_without_encryption() {
    let (good, text) = camera(&["--seconds", "0.05", "--cores", "2", "--json"]);
    assert!(good, "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let runs: Vec<_> =
        lines.iter().map(|it| (it["paced"].as_bool(), it["encrypted"].as_bool())).collect();
    let expected = [(true, false), (true, true), (false, false), (false, true)];
    assert_eq!(runs, expected.map(|(paced, encrypted)| (Some(paced), Some(encrypted))));
    assert!(lines.iter().all(|it| it["frames"].as_u64() > Some(0) && it["cores"] == 2), "{text}");
}

#[test]
fn nonsense_is_refused_with_the_reason() {
    for (arguments, reason) in [
        (["--seconds", "0"], "at most 3600"),
        (["--seconds", "soon"], "at most 3600"),
        (["--cores", "17"], "1..=16"),
    ] {
        let (good, text) = camera(&arguments);
        assert!(!good && text.contains(reason), "{arguments:?}: {text}");
    }
}
