//! Receipts: fetched, kept, checked without the device, and priced.

use serde_json::Value;

use crate::harness::{User, by, on};

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn receipts_are_fetched_checked_and_priced_and_every_change_is_found() {
    let user = User::new();
    let mut hub = user.hub();
    let attic = user.device("attic", Some(&hub));
    let cellar = user.device("cellar", Some(&hub));
    user.install(&attic, &["counter", "thermostat"]);
    user.install(&cellar, &["dashboard"]);
    hub.wait_until_listed("attic", 2);
    for number in ["1", "2", "3"] {
        assert_eq!(user.call(on(&attic), &["counter", "add"]), number);
    }
    assert!(user.call(by(&hub), &["dashboard@cellar", "show"]).contains("attic: 21.0"));
    let fetch = |device: &crate::harness::Process| {
        objects(&user.ok(&[
            "receipts",
            "--close",
            "--save",
            "receipts",
            "--json",
            "--device",
            &device.address,
        ]))
    };
    let first = fetch(&attic);
    let counter = first.iter().find(|receipt| receipt["name"] == "counter").unwrap();
    assert_eq!(counter["number"], 0);
    assert!(counter["usage"]["fuel"].as_u64().unwrap() > 0);
    assert_eq!(counter["usage"]["flash_writes"], 3);
    assert!(counter["usage"]["memory_bytes_peak"].as_u64().unwrap() > 0);
    let dashboard = &fetch(&cellar)[0];
    assert_eq!(dashboard["usage"]["messages"], 2);
    assert!(dashboard["usage"]["air_bytes"].as_u64().unwrap() > 100, "{dashboard}");

    assert_eq!(user.call(on(&attic), &["counter", "add"]), "4");
    assert_eq!(attic.interrupt().code(), Some(0));
    let attic = user.device("attic", Some(&hub));
    let second = fetch(&attic);
    let counter = second.iter().find(|receipt| receipt["name"] == "counter").unwrap();
    // A value, and the lines of its log, which are kept when the device stops.
    assert_eq!((&counter["number"], &counter["usage"]["flash_writes"]), (&1.into(), &2.into()));
    drop((attic, cellar));

    std::fs::write(user.path("none"), "").unwrap();
    for proof in [&["--verify"][..], &["--tariff", "tariff.toml"]] {
        let error = user.error(&[&["bill", "none"], proof].concat());
        assert!(
            error.contains("none holds no receipt") || error.contains("tariff.toml"),
            "{error}"
        );
    }
    let bill = objects(&user.ok(&["bill", "receipts", "--verify", "--json"]));
    assert_eq!(bill.len(), 3);
    let counter = bill.iter().find(|chain| chain["name"] == "counter").unwrap();
    assert_eq!((&counter["receipts"], &counter["usage"]["flash_writes"]), (&2.into(), &5.into()));
    std::fs::write(
        user.path("tariff.toml"),
        "currency = \"EUR\"\nflash_thousand_writes = 2000\n[tiers_percent]\n1 = 50\n",
    )
    .unwrap();
    let priced = objects(&user.ok(&["bill", "receipts", "--tariff", "tariff.toml", "--json"]));
    assert_eq!(priced.last().unwrap()["currency"], "EUR");
    let text = user.ok(&["bill", "receipts", "--tariff", "tariff.toml"]);
    assert!(text.contains("sum: 0.00000") && text.contains("EUR"), "{text}");

    let lines = std::fs::read_to_string(user.path("receipts")).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let verify = |lines: &[&str]| {
        std::fs::write(user.path("changed"), lines.join("\n")).unwrap();
        user.error(&["bill", "changed", "--verify"])
    };
    let twice = [&lines[..], &lines[..1]].concat();
    assert!(verify(&twice).contains("that period was billed already"));
    let mut changed = lines[0].to_string();
    let digit = if changed.ends_with('0') { "1" } else { "0" };
    changed.replace_range(changed.len() - 1.., digit);
    assert!(verify(&[&changed]).contains("not signed by the device"));
    assert!(verify(&["xyz"]).contains("line 1: not a receipt"));
}
