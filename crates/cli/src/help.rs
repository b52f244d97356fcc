//! `tenure --help`: the commands by what they are for.

use clap::Command;

/// The commands, by what they are for; each is in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Write a machine", &["new", "build", "test", "run", "inspect", "key", "secret"]),
    (
        "Hold devices",
        &[
            "device",
            "replay",
            "hub",
            "login",
            "trust-hub",
            "enrol",
            "owner",
            "revoke",
            "use",
            "devices",
            "firmware",
            "flash",
            "serial",
        ],
    ),
    (
        "Put machines on them",
        &[
            "fleet", "push", "pull", "rollout", "install", "rollback", "remove", "trash", "renew",
            "pass", "restart", "stop", "start", "unban", "snapshot", "restore",
        ],
    ),
    ("Look and call", &["shell", "status", "top", "list", "call", "log", "tree", "events", "tls"]),
    ("Mesh and experiments", &["invite", "mesh", "experiment", "sim"]),
    ("Bills and the shell", &["receipts", "bill", "completions"]),
];

/// The template of the help: the commands stand in what comes last but for the options.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n{after-help}\n\nOptions:\n{options}";

/// `command` with its subcommands listed by group.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            text += &format!("  {name:<12} {}\n", first_line(&about));
        }
    }
    command.help_template(TEMPLATE).after_help(text.trim_end().to_owned())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The commands that stand in no group, or in two.
pub fn misplaced(command: &Command) -> Vec<String> {
    let count = |name: &str| {
        GROUPS.iter().flat_map(|(_, names)| *names).filter(|one| **one == name).count()
    };
    let names = command.get_subcommands().map(Command::get_name);
    names.filter(|name| *name != "help" && count(name) != 1).map(str::to_owned).collect()
}
