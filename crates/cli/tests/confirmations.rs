//! The page on confirmations knows each command, each function of a device and each form of the hub's pages.

use std::path::Path;

use tenure_wire::control::Function;

fn page() -> String {
    read("docs/confirmations.md")
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backticks, with line ends as spaces.
fn codes(page: &str) -> Vec<String> {
    let page = page.replace('\n', " ");
    page.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// The commands without further ones below them, and those that do something themselves.
fn commands(command: &clap::Command, before: &str, all: &mut Vec<String>) {
    let name = format!("{before}{}", command.get_name());
    let below = || command.get_subcommands().filter(|one| one.get_name() != "help");
    if below().next().is_none() || !command.is_subcommand_required_set() {
        all.push(name.clone());
    }
    below().for_each(|one| commands(one, &format!("{name} "), all));
}

#[test]
fn each_command_stands_on_the_page_on_confirmations_and_none_that_is_gone() {
    let codes = codes(&page());
    let mut all = Vec::new();
    commands(&tenure_cli::command_line::command(), "", &mut all);
    let missing: Vec<_> = all.iter().filter(|name| !codes.contains(name)).collect();
    assert!(missing.is_empty(), "say what their confirmations mean: {missing:?}");
    let gone: Vec<_> =
        codes.iter().filter(|code| code.starts_with("tenure ") && !all.contains(code)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn each_function_of_a_device_stands_on_the_page_on_confirmations() {
    let codes = codes(&page());
    let missing: Vec<&str> = Function::ALL
        .iter()
        .map(|function| function.name())
        .filter(|name| !codes.iter().any(|code| code == name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn each_form_of_the_hubs_pages_stands_on_the_page_on_confirmations() {
    let codes = codes(&page());
    let routes = read("crates/hub-server/src/web/pages.rs");
    let forms: Vec<&str> = routes
        .lines()
        .filter(|line| line.contains(".route(\"") && line.contains("post("))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert!(forms.len() >= 7, "{forms:?}");
    let missing: Vec<_> =
        forms.iter().filter(|form| !codes.iter().any(|code| code == *form)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
