use std::os::unix::fs::PermissionsExt as _;

use tenure_crypto::SigningKey;
use tenure_wire::directory::Enrolment;

use super::*;

const HUB: &str = "10.0.0.1:7369";

fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    (folder, home)
}

fn record(key: u8, number: u64) -> DeviceRecord {
    let owner = SigningKey::from_bytes(&[1; 32]);
    let device_key = SigningKey::from_bytes(&[key; 32]).verifying_key();
    let enrolment = Enrolment { device: "attic".parse().unwrap(), device_key, number };
    DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: tenure_directory::enrol(&owner, &enrolment),
        enrolment,
        sequence: 1,
        expires_unix_s: 1,
        epoch: postcard::from_bytes(&[0; 64]).unwrap(),
        addresses: Vec::new(),
        device_machine: PublicKey([key; 32]),
        machines: Vec::new(),
        succession: None,
    }
}

fn at(port: u16) -> Address {
    Address::Udp(([10, 0, 0, 2], port).into())
}

#[test]
fn user_without_keys_who_says_which_device_is_remembered_in_a_private_folder() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("config/tenure"));
    Known::of(&home).unwrap().set_defaults(Some("attic".into()), None).unwrap();
    assert_eq!(Known::of(&home).unwrap().defaults(), (Some("attic"), None));
    let mode = std::fs::metadata(home.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn name_that_another_device_takes_is_told_with_the_key_of_the_one_before() {
    let (_folder, home) = home();
    let mut known = Known::of(&home).unwrap();
    let name = "attic".parse().unwrap();
    let [first, second] = [2, 3].map(|key| PublicKey([key; 32]));
    assert_eq!(known.taken_name(&name, &first), None);
    known.met_device(&record(2, 1), &at(7370), None).unwrap();
    assert_eq!(known.taken_name(&name, &first), None);
    let told = known.taken_name(&name, &second).unwrap();
    assert!(told.contains(&first.to_string()), "{told}");
}

#[test]
fn hub_that_shows_another_key_is_refused_until_the_user_names_it() {
    let (_folder, home) = home();
    let (first, second) = (PublicKey([1; 32]), PublicKey([2; 32]));
    Known::of(&home).unwrap().met_hub(HUB, None, &first).unwrap();
    let mut known = Known::of(&home).unwrap();
    known.met_hub(HUB, None, &first).unwrap();
    let error = known.met_hub(HUB, None, &second).unwrap_err().to_string();
    assert!(error.contains("another hub") && error.contains(&second.to_string()), "{error}");
    known.met_hub(HUB, Some(&first), &second).unwrap_err();
    known.met_hub(HUB, Some(&second), &second).unwrap();
    let mut known = Known::of(&home).unwrap();
    known.met_hub(HUB, None, &second).unwrap();
    known.met_hub(HUB, None, &first).unwrap_err();
    known.met_hub("10.0.0.1:7000", None, &first).unwrap();
}

#[test]
fn name_stands_for_the_key_of_its_newest_enrolment() {
    let (_folder, home) = home();
    let mut known = Known::of(&home).unwrap();
    let attic = "attic".parse().unwrap();
    assert_eq!(known.device(&attic).unwrap(), None);
    known.met_device(&record(10, 5), &at(7), None).unwrap();
    let (key, address) = Known::of(&home).unwrap().device(&attic).unwrap().unwrap();
    assert_eq!((key, address.port()), (PublicKey([10; 32]), 7));
    for (key, number) in [(11, 4), (11, 5)] {
        let error = known.met_device(&record(key, number), &at(8), None).unwrap_err().to_string();
        assert!(error.contains("out of date"), "{error}");
    }
    known.met_device(&record(11, 6), &at(9), None).unwrap();
    let (key, address) = Known::of(&home).unwrap().device(&attic).unwrap().unwrap();
    assert_eq!((key, address.port()), (PublicKey([11; 32]), 9));
    known.check_device(&record(10, 5)).unwrap_err();
    known.forget_device(&attic).unwrap();
    assert_eq!(Known::of(&home).unwrap().devices().count(), 0);
}

#[test]
fn two_commands_that_write_at_once_keep_what_the_other_wrote() {
    let (_folder, home) = home();
    let (mut one, mut other) = (Known::of(&home).unwrap(), Known::of(&home).unwrap());
    one.met_hub(HUB, None, &PublicKey([1; 32])).unwrap();
    other.set_defaults(Some("attic".into()), Some(HUB.into())).unwrap();
    let known = Known::of(&home).unwrap();
    assert_eq!(known.defaults(), (Some("attic"), Some(HUB)));
    assert_eq!(known.kept.hubs.len(), 1);
}

#[test]
fn many_commands_that_meet_devices_and_hubs_at_once_forget_none() {
    let (_folder, home) = home();
    std::thread::scope(|scope| {
        for command in 0..4_u16 {
            let home = &home;
            scope.spawn(move || {
                for number in 0..8 {
                    let mut known = Known::of(home).unwrap();
                    known
                        .met_hub(&at(command * 8 + number).to_string(), None, &PublicKey([1; 32]))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(Known::of(&home).unwrap().kept.hubs.len(), 32);
}

#[test]
fn key_that_another_command_pinned_meanwhile_counts() {
    let (_folder, home) = home();
    let (mut one, mut other) = (Known::of(&home).unwrap(), Known::of(&home).unwrap());
    one.met_hub(HUB, None, &PublicKey([1; 32])).unwrap();
    other.met_hub(HUB, None, &PublicKey([2; 32])).unwrap_err();
    let (mut one, mut other) = (Known::of(&home).unwrap(), Known::of(&home).unwrap());
    one.met_device(&record(11, 6), &at(9), None).unwrap();
    other.met_device(&record(10, 5), &at(8), None).unwrap_err();
    let (key, _) = Known::of(&home).unwrap().device(&"attic".parse().unwrap()).unwrap().unwrap();
    assert_eq!(key, PublicKey([11; 32]));
}

#[test]
fn file_that_was_damaged_meanwhile_is_not_replaced() {
    let (_folder, home) = home();
    let mut known = Known::of(&home).unwrap();
    std::fs::write(home.folder().join(FILE), "hubs = 7").unwrap();
    known.met_hub(HUB, None, &PublicKey([1; 32])).unwrap_err();
    assert_eq!(std::fs::read_to_string(home.folder().join(FILE)).unwrap(), "hubs = 7");
}

#[test]
fn device_that_was_reached_by_way_of_a_member_is_remembered_with_that_and_keeps_an_address() {
    // C2-1: `--via`.
    let (_folder, home) = home();
    let mut known = Known::of(&home).unwrap();
    known.met_device(&record(10, 5), &Address::Mesh([1; 6]), Some("stairs")).unwrap();
    let known_devices = |known: &Known| -> Vec<[String; 4]> {
        known.devices_and_members().map(|known| known.map(str::to_string)).collect()
    };
    let key = PublicKey([10; 32]).to_string();
    let name: Name = "attic".parse().unwrap();
    let again = Known::of(&home).unwrap();
    assert_eq!(known_devices(&again), [["attic", &key, "", "stairs"].map(str::to_string)]);
    assert!(again.device(&name).unwrap().is_none() && again.has_met(&name));
    known.met_device(&record(10, 5), &at(7), None).unwrap();
    known.met_device(&record(10, 5), &Address::Mesh([1; 6]), Some("stairs")).unwrap();
    assert_eq!(known.device(&name).unwrap().unwrap().1.port(), 7);
}
