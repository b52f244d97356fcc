//! Many commands of one user at one device at the same time: each gets its turn.

use std::process::{Child, Stdio};

use tenure_cli::home::Home;
use tenure_cli::reach::client::Client;
use tenure_wire::control::{Client as _, InstallBegin};

use crate::guests::package;
use crate::harness::{User, on};

/// How many commands run at once.
const COMMANDS: usize = 8;

/// Starts a command at the device at `address`.
fn start(user: &User, address: &str, words: &[&str]) -> Child {
    let mut command = user.command(&[words, &["--device", address]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a command, which must be a good one; returns what it told beside its outcome.
fn succeed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    error
}

/// A project whose package is a hundred times as long as a part of a transfer.
fn large_package(user: &User) -> String {
    let folder = user.path("large");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = "name = \"large\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n\
                [budget]\nmemory_bytes = 524288\n";
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "#include <tenure.h>\n\
        static volatile unsigned char filled[400000] = {[0 ... 399999] = 7};\n\
        TENURE_EXPORT(last) { tenure_reply_text(filled[399999] == 7 ? \"there\" : \"lost\"); }\n";
    std::fs::write(folder.join("src/main.c"), source).unwrap();
    user.ok(&["build", "large"]);
    user.path("large/large.tenure").into_os_string().into_string().unwrap()
}

#[test]
fn installs_at_once_at_one_device_wait_their_turn_and_all_go_in() {
    let user = User::new();
    let package = large_package(&user);
    let device = user.device("attic", None);
    let names: Vec<String> = (0..COMMANDS).map(|number| format!("large-{number}")).collect();
    let install =
        |name: &String| start(&user, &device.address, &["install", &package, "--as", name]);
    let children: Vec<Child> = names.iter().map(install).collect();
    let told: Vec<String> = children.into_iter().map(succeed).collect();
    let waited = told.iter().filter(|told| told.contains("waiting: another command")).count();
    assert!(waited > 0, "they ran one after the other");
    for name in &names {
        assert_eq!(user.call(on(&device), &[name, "last"]), "there");
    }
}

#[test]
fn transfer_whose_sender_is_gone_holds_up_the_next_for_a_while_alone() {
    let user = User::new();
    // Built before the transfer begins, as that takes longer than the device waits for the rest.
    let counter = package("counter");
    let device = user.device("attic", None);
    let mut client = Client::new(&Home::at(user.home())).unwrap();
    let attic = client.device(&device.socket_address().into()).unwrap();
    client.at(&attic.route).install_begin(InstallBegin { bytes: 100_000 }).unwrap();
    drop(client);
    let told = succeed(start(&user, &device.address, &["install", &counter, "--grant", "all"]));
    assert!(told.starts_with("waiting: another command transfers something to attic"), "{told}");
}

#[test]
fn updates_of_one_machine_at_once_follow_one_another() {
    let user = User::new();
    let package = package("counter");
    let device = user.device("attic", None);
    let install = |_| start(&user, &device.address, &["install", &package, "--grant", "all"]);
    let children: Vec<Child> = (0..COMMANDS).map(install).collect();
    children.into_iter().for_each(|child| drop(succeed(child)));
}

#[test]
fn calls_lists_and_changes_at_once_at_one_device_all_succeed() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let address = &device.address;
    let ask = |number: usize| {
        let path = format!("kept.{number}");
        for _ in 0..4 {
            succeed(start(&user, address, &["call", "counter", "add", "1"]));
            succeed(start(&user, address, &["list"]));
            succeed(start(&user, address, &["tree", "set", "counter", &path, "x"]));
        }
    };
    std::thread::scope(|scope| {
        let ask = &ask;
        (0..COMMANDS).for_each(|number| drop(scope.spawn(move || ask(number))));
    });
    assert_eq!(user.call(on(&device), &["counter", "value"]), (4 * COMMANDS).to_string());
}
