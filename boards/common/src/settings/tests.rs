use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use tenure_node::{Hub, SleepPolicy};
use tenure_wire::{PublicKey, VerifyingKey};

use super::{Settings, SettingsError};

fn text(name: &str) -> String {
    let owner = format!("{}/{}", VerifyingKey([1; 32]), PublicKey([2; 32]));
    format!("# a device\nname={name}\nowner={owner}\naddress = 10.0.2.15/24\n")
}

fn sector(text: &str) -> Vec<u8> {
    let mut sector = text.as_bytes().to_vec();
    sector.resize(4096, 0xFF);
    sector
}

#[test]
fn settings_without_optional_lines_have_defaults() {
    let settings = Settings::parse(&sector(&text("attic"))).unwrap();
    assert_eq!(settings.name.as_str(), "attic");
    assert_eq!(settings.owner.machine, PublicKey([2; 32]));
    assert_eq!(settings.address, (Ipv4Addr::new(10, 0, 2, 15), 24));
    assert_eq!((settings.port, settings.gateway, settings.hub), (7370, None, None));
}

#[test]
fn settings_with_every_line_are_read() {
    let all = text("attic") + "gateway=10.0.2.2\nport=7\nhub=10.0.2.2:7369";
    let settings = Settings::parse(&sector(&all)).unwrap();
    assert_eq!(settings.gateway, Some(Ipv4Addr::new(10, 0, 2, 2)));
    let address: core::net::SocketAddr = "10.0.2.2:7369".parse().unwrap();
    let hub = Hub { address: address.into(), key: None };
    assert_eq!((settings.port, settings.hub), (7, Some(hub.clone())));
    let key = PublicKey([3; 32]);
    let pinned = text("attic") + &format!("hub=10.0.2.2:7369#{key}");
    let settings = Settings::parse(&sector(&pinned)).unwrap();
    assert_eq!(settings.hub, Some(Hub { key: Some(key), ..hub }));
    let damaged = text("attic") + "hub=10.0.2.2:7369#abc";
    assert_eq!(Settings::parse(&sector(&damaged)), Err(SettingsError::Wrong("hub")));
}

#[test]
fn the_network_to_join_is_read_as_it_stands() {
    let lines = text("attic") + "wifi=Our Home\npassword=a=b c\n";
    let settings = Settings::parse(&sector(&lines)).unwrap();
    assert_eq!(settings.wifi.as_deref(), Some("Our Home"));
    assert_eq!(settings.password.as_deref(), Some("a=b c"));
    let without = Settings::parse(&sector(&text("attic"))).unwrap();
    assert_eq!((without.wifi, without.password), (None, None));
}

#[test]
fn sleep_is_read_in_seconds() {
    let check = |line: &str, sleep| {
        assert_eq!(Settings::parse(&sector(&(text("attic") + line))).unwrap().sleep, sleep);
    };
    let ms = Duration::from_millis;
    check("", SleepPolicy::Never);
    check("deep-sleep-after=5", SleepPolicy::WhenIdle { at_least: ms(5000) });
    check("deep-sleep-after=0.25", SleepPolicy::WhenIdle { at_least: ms(250) });
    check("duty-cycle=1.5/60", SleepPolicy::DutyCycle { run: ms(1500), sleep: ms(60_000) });
    for nonsense in ["", "0", "0.0", "-1", "1.", "1.2345", "1.+2", "nan", "1/2"] {
        let sector = sector(&(text("attic") + "deep-sleep-after=" + nonsense));
        let error = SettingsError::Wrong("deep-sleep-after");
        assert_eq!(Settings::parse(&sector), Err(error), "{nonsense}");
    }
}

#[test]
fn what_is_wrong_with_settings_is_named() {
    let check =
        |text: &str, error| assert_eq!(Settings::parse(&sector(text)), Err(error), "{text}");
    check("", SettingsError::Blank);
    check("name=attic", SettingsError::Missing("owner"));
    check(&text("no name"), SettingsError::Wrong("name"));
    check(&(text("attic") + "gateway=here"), SettingsError::Wrong("gateway"));
    check(&text("attic").replace("/24", "/33"), SettingsError::Wrong("address"));
    check(&(text("attic") + "duty-cycle=1"), SettingsError::Wrong("duty-cycle"));
    check(&(text("attic") + "colour=blue"), SettingsError::Unknown { line: 5 });
    assert_eq!(Settings::parse(&[0xC3, 0x28, 0xFF]), Err(SettingsError::NoText));
    assert_eq!(Settings::parse(&[]), Err(SettingsError::Blank));
}
