//! Machines that are updated, restarted, stopped and started by their owner.

use tenure_testbed::wait_until;

use crate::harness::{Process, User, finish, on, signal};

/// A project in C whose package asks for `capabilities`.
fn project(user: &User, version: &str, capabilities: &str) {
    let folder = user.path("served");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = format!(
        "name = \"served\"\nversion = \"{version}\"\nlanguage = \"c\"\n[capabilities]\n{capabilities}\n"
    );
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "#include <tenure.h>\nstatic int calls;\n\
                  TENURE_EXPORT(count) { tenure_reply_text(++calls == 1 ? \"first\" : \"again\"); }\n\
                  TENURE_EXPORT(spin) { for (;;) tenure_yield(); }\n";
    std::fs::write(folder.join("src/main.c"), source).unwrap();
}

#[test]
fn an_update_says_which_way_it_goes_and_keeps_what_was_granted() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = ["--device", &device.address];
    let install = |more: &[&str]| user.json(&[&["install", "served"], more, &at].concat());
    project(&user, "0.1.0", "callers = [\"*@*\"]");
    let error = user.error(&[&["install", "served"][..], &at].concat());
    assert!(error.contains("callers *@*; say what it gets"), "{error}");
    assert_eq!(install(&["--grant", "all"])["done"], "installed");
    assert_eq!(install(&[])["done"], "installed again");
    project(&user, "0.2.0", "callers = [\"*@*\"]");
    let updated = install(&[]);
    assert_eq!((&updated["done"], &updated["version"]), (&"updated".into(), &"0.2.0".into()));
    assert_eq!(updated["version_before"], "0.1.0");
    assert_eq!(updated["granted"]["callers"][0], "*@*");
    project(&user, "0.1.5", "callers = [\"*@*\"]\nsecrets = [\"wifi\"]");
    let error = user.error(&[&["install", "served"][..], &at].concat());
    assert!(error.contains("keeps by --grant same: callers *@*"), "{error}");
    let text = user.ok(&[&["install", "served", "--grant", "same"][..], &at].concat());
    assert!(text.starts_with("downgraded served from 0.2.0 to 0.1.5 on attic"), "{text}");
    assert!(text.contains("granted: callers *@*\n"), "{text}");
    let list = user.ok(&[&["list"][..], &at].concat());
    assert!(list.contains("served           0.1.5"), "{list}");
}

#[test]
fn a_machine_is_restarted_stopped_and_started_by_its_owner() {
    let user = User::new();
    let address = crate::harness::free_address();
    let device = user.device_at("attic", &address, None);
    let at = ["--device", &address];
    project(&user, "0.1.0", "");
    user.ok(&[&["install", "served"][..], &at].concat());
    let count = || user.call(on(&device), &["served", "count"]);
    assert_eq!([count(), count()], ["first", "again"]);
    let spin = user.command(&[&["call", "served", "spin"][..], &at].concat());
    let caller = std::thread::spawn(move || finish(spin));
    wait_until(|| {
        let machine = user.json(&[&["list"][..], &at].concat())["machines"][0].clone();
        if machine["serves"] == "spin" {
            Ok(())
        } else {
            Err(format!("it serves nothing: {machine}"))
        }
    });
    let top = user.json(&[&["top", "--once", "--every", "0.1"][..], &at].concat());
    let busy = &top["machines"][0];
    assert_eq!((&busy["name"], &busy["serves"]), (&"served".into(), &"spin".into()), "{top}");
    let text = user.ok(&[&["top", "--once", "--every", "0.1"][..], &at].concat());
    assert!(text.starts_with("attic, up ") && !text.contains('\x1b'), "{text}");
    let list = user.ok(&[&["list"][..], &at].concat());
    assert!(list.contains("(serves spin for "), "{list}");
    assert_eq!(user.json(&[&["restart", "served"][..], &at].concat())["restarted"], "served");
    assert!(!caller.join().unwrap().status.success(), "it has no answer");
    assert_eq!(count(), "first");
    user.ok(&[&["stop", "served"][..], &at].concat());
    let error = user.call_error(on(&device), &["served", "count"]);
    assert!(error.contains("`tenure start served` starts it again"), "{error}");
    let error = user.error(&[&["restart", "served"][..], &at].concat());
    assert_eq!(error, "served isn't restarted: it stays stopped until `tenure start served`");
    device.kill();
    let device = user.device_at("attic", &address, None);
    let machine = user.json(&[&["list"][..], &at].concat())["machines"][0].clone();
    assert_eq!(machine["state"], "stopped", "over a restart of its device");
    let text = user.ok(&[&["install", "served"][..], &at].concat());
    assert!(text.contains("stays stopped until `tenure start served`"), "{text}");
    assert_eq!(user.json(&[&["start", "served"][..], &at].concat())["started"], "served");
    assert_eq!(user.call(on(&device), &["served", "count"]), "first");
    let error = user.error(&[&["stop", "nobody"][..], &at].concat());
    assert!(error.contains("no machine `nobody`"), "{error}");
}

#[test]
fn a_rollback_goes_to_the_packages_before_one_by_one_and_refuses_where_none_is_kept() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = ["--device", &device.address];
    let rollback = |more: &[&str]| user.json(&[&["rollback", "served"], more, &at].concat());
    let refused = || user.error(&[&["rollback", "served"][..], &at].concat());
    for version in ["0.1.0", "0.2.0", "0.3.0"] {
        project(&user, version, "callers = [\"*@*\"]");
        user.ok(&[&["install", "served", "--grant", "all"][..], &at].concat());
    }
    let text = user.ok(&[&["rollback", "served"][..], &at].concat());
    assert_eq!(text, "rolled served back from 0.3.0 to 0.2.0 on attic\n");
    // A package that is installed after a step back follows the one that it replaced.
    project(&user, "0.4.0", "");
    user.ok(&[&["install", "served"][..], &at].concat());
    let version = |back: &serde_json::Value| back["version"].as_str().unwrap().to_string();
    let error = refused();
    assert!(error.contains("say what it gets"), "0.2.0 asks for more than 0.4.0 had: {error}");
    assert_eq!(version(&rollback(&["--grant", "all"])), "0.2.0");
    assert_eq!(version(&rollback(&[])), "0.1.0");
    let error = refused();
    assert!(error.starts_with("nothing before served 0.1.0 on attic is kept here"), "{error}");
    assert_eq!(user.json(&[&["list"][..], &at].concat())["machines"][0]["version"], "0.1.0");
    let error = user.error(&[&["rollback", "nobody"][..], &at].concat());
    assert!(error.contains("attic has no machine `nobody`"), "{error}");

    // Another machine of that name has none of its packages.
    user.ok(&[&["remove", "served", "--for-good"][..], &at].concat());
    user.ok(&[&["install", "served"][..], &at].concat());
    let error = refused();
    assert!(error.starts_with("nothing before served 0.4.0"), "{error}");
}

/// Waits until `version` is what a machine says of itself.
fn wait_for_count(user: &User, address: &str, expected: &str) {
    let device = ["call", "served", "count", "--device", address];
    wait_until(|| {
        let output = finish(user.command(&device));
        match String::from_utf8_lossy(&output.stdout).trim() == expected {
            true => Ok(()),
            false => Err(format!("{output:?}")),
        }
    });
}

#[test]
fn project_that_is_watched_is_built_and_put_on_its_device_again_and_a_build_error_ends_nothing() {
    let user = User::new();
    let device = user.device("attic", None);
    let at = ["--device", &device.address];
    project(&user, "0.1.0", "");
    let main = user.path("served/src/main.c");
    let source = |text: &str| std::fs::write(&main, text).unwrap();
    let answering = |word: &str| {
        format!("#include <tenure.h>\nTENURE_EXPORT(count) {{ tenure_reply_text(\"{word}\"); }}\n")
    };
    let watching = [&["install", "served", "--watch", "--json"][..], &at].concat();
    let mut install = Process::spawn(user.command(&watching));
    install.wait_for_event("watching");
    let mut run = Process::start(user.command(&["run", "served", "--watch", "--json"]));
    run.wait_for_event("built");
    let places = [device.address.clone(), run.address.clone()];
    for address in &places {
        wait_for_count(&user, address, "again");
    }
    source("no C at all");
    install.wait_for_event("watching");
    for address in &places {
        wait_for_count(&user, address, "again");
    }
    source(&answering("mended"));
    for address in &places {
        wait_for_count(&user, address, "mended");
    }
    signal("INT", install.id());
    assert_eq!(install.wait().code(), Some(0), "Ctrl-C is how watching ends");
    assert_eq!(run.interrupt().code(), Some(0));
}
