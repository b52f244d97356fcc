//! The rights that a package asks for, its owner grants, and its machine uses.

use crate::guests::package;
use crate::harness::{User, by, on};

#[test]
fn nothing_is_granted_that_nobody_was_asked_about() {
    let user = User::new();
    let device = user.device("attic", None);
    let install = ["install", &package("dashboard"), "--device", &device.address];
    let error = user.error(&install);
    assert!(error.contains("asks for: calls thermostat@attic thermostat@cellar"), "{error}");
    assert!(error.contains("--grant all"), "{error}");
    let error = user.error(&[&install[..], &["--grant", "calls=*"]].concat());
    assert!(error.contains("goes beyond what the package asks for"), "{error}");
    let installed = user.json(&[&install[..], &["--grant", "calls=thermostat@attic"]].concat());
    assert_eq!(installed["asked"]["calls"].as_array().unwrap().len(), 2);
    assert_eq!(installed["granted"]["calls"], serde_json::json!(["thermostat@attic"]));
}

#[test]
fn a_machine_calls_whom_its_lease_names_and_nobody_else() {
    let user = User::new();
    let mut hub = user.hub();
    let mut attic = user.device("attic", Some(&hub));
    let cellar = user.device("cellar", Some(&hub));
    let at_cellar = ["--device", &cellar.address];
    user.install(&attic, &["thermostat"]);
    hub.wait_until_listed("attic", 1);
    let package = package("dashboard");
    let granting = |what: &str| {
        user.ok(&[&["install", &package, "--grant", what][..], &at_cellar].concat());
        user.call(on(&cellar), &["dashboard", "show"])
    };
    let page = granting("calls=thermostat@cellar");
    assert!(page.contains("attic: (not granted)"), "{page}");
    let log = user.ok(&[&["log", "dashboard"][..], &at_cellar].concat());
    assert!(log.contains("not granted: call thermostat@attic"), "{log}");
    assert!(granting("all").contains("attic: 21.0"));
    let inspected = [&["inspect", &package, "--installed"][..], &at_cellar].concat();
    let report = user.json(&inspected);
    assert_eq!(report["granted"][0]["to"], "thermostat@attic");
    assert_eq!(report["granted"][0]["used"], 1);
    assert_eq!(report["denied"], 0);
    assert!(user.ok(&inspected).contains("calls thermostat@attic, used 1 time"));
    assert_eq!(report["installed"]["is_this"], true);
    let other = crate::guests::package("thermostat");
    let report = user
        .json(&[&["inspect", &other, "--installed", "--as", "dashboard"][..], &at_cellar].concat());
    assert_eq!(report["installed"]["is_this"], false, "{report}");

    // The callee's lease counts as much as the caller's.
    let closed = crate::guests::package("thermostat");
    user.ok(&["install", &closed, "--grant", "none", "--device", &attic.address]);
    let page = user.call(on(&cellar), &["dashboard", "show"]);
    assert!(page.contains("attic: (denied)"), "{page}");
    attic.wait_for_log("thermostat", "not granted: be called by dashboard@cellar");
    assert_eq!(user.call(by(&hub), &["thermostat@attic", "read"]), "21.0", "the owner always may");
}
