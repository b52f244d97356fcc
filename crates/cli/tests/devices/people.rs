//! People of an owner at a hub, by the commands: invited, let in by keys of their own, and dismissed.

use serde_json::Value;

use crate::harness::{Process, User, any_address};
use crate::hub::get;

/// The cookie of a browser that opened the address which `tenure login` printed.
fn cookie(signed_in: &Value) -> String {
    let word = |name: &str| signed_in[name].as_str().unwrap();
    let answer = get(word("url"), word("address").strip_prefix(word("url")).unwrap(), "");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    format!("cookie: {}", cookie.split(';').next().unwrap())
}

#[test]
fn person_who_is_invited_signs_in_with_a_key_of_the_own_until_the_owner_dismisses_it() {
    let (owner, ada) = (User::new(), User::new());
    let mut command = owner.own_hub(any_address());
    command.args(["--pages", any_address()]);
    let mut hub = Process::start(command);
    let _device = owner.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    let at = ["--hub", &hub.address];
    let on = |words: &[&'static str]| -> Vec<String> {
        words.iter().copied().chain(at).map(String::from).collect()
    };
    let ask = |user: &User, words: &[&'static str]| {
        let words = on(words);
        user.json(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let refused = |user: &User, words: &[&'static str]| {
        let words = on(words);
        user.error(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(refused(&ada, &["login", "--person"]).contains("owns no device"));
    let invitation = ask(&owner, &["people", "invite", "Ada Lovelace", "--role", "operator"]);
    // The command names the hub by its key, too.
    let command = invitation["command"].as_str().unwrap();
    assert!(command.contains(&format!("--hub {}#", hub.address)), "{command}");
    let words: Vec<&str> = command.strip_prefix("tenure ").unwrap().split(' ').collect();
    let signed_in = ada.json(&words);
    let first = cookie(&signed_in);
    let url = signed_in["url"].as_str().unwrap().to_string();
    assert!(get(&url, "/devices", &first).contains(">attic<"));
    assert!(ada.error(&words).contains("the invitation isn't good"), "it opens once");
    let listed = ask(&owner, &["people", "list"]);
    assert_eq!((&listed["name"], &listed["role"]), (&"Ada Lovelace".into(), &"operator".into()));
    assert_eq!(listed["state"], "here");

    let second = cookie(&ask(&ada, &["login", "--person"]));
    let refusal = refused(&ada, &["login", "--person", "--token", "x", "--scope", "packages"]);
    assert!(refusal.contains("--scope"), "{refusal}");
    let refusal = refused(&ada, &["people", "dismiss", "Ada Lovelace", "--person"]);
    assert!(refusal.contains("doesn't open that"), "{refusal}");

    ask(&owner, &["people", "role", "Ada Lovelace", "viewer"]);
    assert!(get(&url, "/v1/devices", &second).starts_with("HTTP/1.1 401"));
    let third = cookie(&ask(&ada, &["login", "--person"]));
    assert!(get(&url, "/v1/devices", &third).starts_with("HTTP/1.1 200"));
    let sessions = owner.ok(&["people", "sessions", "--hub", &hub.address]);
    let hers = sessions.lines().find(|line| line.contains(" page, Ada Lovelace"));
    let id = hers.and_then(|line| line.split(' ').next()).expect(&sessions);
    owner.ok(&["people", "end", id, "--hub", &hub.address]);
    assert!(get(&url, "/v1/devices", &third).starts_with("HTTP/1.1 401"));

    let fourth = cookie(&ask(&ada, &["login", "--person"]));
    ask(&owner, &["people", "dismiss", "Ada Lovelace"]);
    assert!(get(&url, "/v1/devices", &fourth).starts_with("HTTP/1.1 401"));
    assert!(refused(&ada, &["login", "--person"]).contains("owns no device"));
    let none = owner.ok(&["people", "list", "--hub", &hub.address]);
    assert!(none.contains("tenure people invite"), "{none}");
    assert!(refused(&owner, &["people", "dismiss", "Eve"]).contains("there is no such person"));
}
