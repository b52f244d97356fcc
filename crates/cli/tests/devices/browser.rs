//! The panel of a thermostat in a real browser, at the hub, as a phone shows it.

#[path = "../../../hub-server/tests/browser/webdriver.rs"]
mod webdriver;

use webdriver::{Browser, has_browser};

use crate::harness::{Process, User, any_address, on};

/// A thermometer whose readings stay.
const THERMOMETER: &str =
    "[temperature]\nkind = \"thermometer\"\nperiod_ms = 200\npoints = [[0.0, 18.5]]\n";

#[test]
fn phone_shows_the_temperature_live_and_sets_the_thermostat_at_the_hub() {
    if !has_browser() {
        return;
    }
    let user = User::new();
    std::fs::write(user.path("peripherals.toml"), THERMOMETER).unwrap();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", any_address()]);
    let mut hub = Process::start(command);
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--hub", &hub.address]);
    command.args(["--peripherals", "peripherals.toml"]);
    let device = Process::start(command);
    user.install(&device, &["thermostat", "panel"]);
    hub.wait_until_listed("attic", 2);
    let login = user.json(&["login", "--hub", &hub.address]);
    let text = |name: &str| login[name].as_str().unwrap().to_string();
    let browser = Browser::start();
    browser.resize(390, 844);
    browser.go(&text("address"));
    browser.wait_for("attic");
    browser.go(&format!("{}/m/panel@attic", text("url")));
    browser.wait_for("It is 18.5 °C, and shall be");
    browser.wait_for("21.0 °C");
    let width = browser.execute("return document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(390), "{width} pixels wide on a phone of 390");
    browser.execute("document.querySelector('input').value = '19.5'");
    browser.click("Set");
    browser.wait_for("19.5 °C");
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "19.5");
    // What somebody else sets shows by itself.
    user.call(on(&device), &["thermostat", "set", "17.0"]);
    browser.wait_for("17.0 °C");
    assert_eq!(browser.console(), Vec::<String>::new(), "the browser complains of nothing");
}
