//! Words that Tab completes, and lines that mean the shell's device.

use super::*;

#[test]
fn line_without_a_device_means_that_of_the_shell_in_every_command() {
    let place = Where { hub: Some("h:1".into()), ..Where::of("attic") };
    let commands = commands_at(Line::command(), &Defaults::of(&place));
    let device = |words: &[&str]| {
        let matches = commands.clone().try_get_matches_from(words).unwrap();
        let mut below = &matches;
        while let Some((_, next)) = below.subcommand() {
            below = next;
        }
        (below.get_one::<String>("device").cloned(), below.get_one::<String>("hub").cloned())
    };
    let shells = (Some("attic".to_string()), Some("h:1".to_string()));
    for words in [
        &["call", "m", "f"][..],
        &["tree", "m"],
        &["tree", "set", "m", "p", "-1"],
        &["log"],
        &["list"],
        &["status"],
        &["restart", "m"],
    ] {
        assert_eq!(device(words), shells, "{words:?}");
    }
    let other = device(&["call", "m", "f", "--device", "cellar"]);
    assert_eq!(other, (Some("cellar".to_string()), shells.1));
}

#[test]
fn tab_completes_commands_and_options_and_asks_the_device_only_for_machines() {
    let commands = Line::command();
    let complete = |words: &[&str], begun: &str| {
        completer::candidates(&commands, words, begun, || panic!("asked the device"))
    };
    assert_eq!(complete(&[], "st"), ["start", "status", "stop"]);
    assert_eq!(complete(&[], "e"), ["events", "exit"]);
    assert_eq!(complete(&["log"], "--fo"), ["--follow"]);
    assert_eq!(complete(&["nonsense"], "x"), Vec::<String>::new());
    let asked = std::cell::Cell::new(0);
    let machines = || {
        asked.set(asked.get() + 1);
        Vec::new()
    };
    for words in [&["call"][..], &["call", "m"], &["tree", "set"], &["restart"]] {
        completer::candidates(&commands, words, "m", machines);
    }
    assert_eq!(asked.get(), 4);
}
