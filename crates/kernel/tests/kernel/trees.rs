//! Trees: what machines change, on top of what their package gave them.

use tenure_kernel::{Config, InstallError, Ran};
use tenure_store::ValueKind;
use tenure_wire::Budget;
use tenure_wire::limits::{PATH_BYTES_MAX, VALUE_BYTES_MAX};

use crate::world::{Device, name, text};

/// Sets what its parameter names to "new", deletes it, or lists what is below it.
const KEEPER: &str = r#"(data (i32.const 0) "new") (data (i32.const 16) "level.one") (data (i32.const 32) "level")
    (func $path (result i32)
      (call $parameter_read (i32.const 0) (i32.const 4096) (i32.const 128)))
    (func (export "set")
      (call $reply_digit (call $tree_set (i32.const 4096) (call $path) (i32.const 1)
        (i32.const 0) (i32.const 3))))
    (func (export "delete") (call $reply_digit (call $tree_delete (i32.const 4096) (call $path))))
    (func (export "get") (local $length i32)
      (local.set $length (call $tree_get (i32.const 4096) (call $path) (i32.const 8192) (i32.const 64)))
      (if (i32.ge_s (local.get $length) (i32.const 0))
        (then (drop (call $reply (i32.const 8192) (local.get $length))))))
    (func (export "list") (local $length i32)
      (local.set $length (call $tree_list (i32.const 4096) (call $path) (i32.const 8192) (i32.const 8000)))
      (drop (call $reply (i32.const 8192) (local.get $length))))"#;

fn keeper(values: &[(&str, &str)]) -> Device {
    let mut device = Device::new();
    device.base =
        values.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    device.install("keeper", KEEPER);
    device
}

fn ask(device: &mut Device, function: &str, path: &str) -> String {
    let keeper = crate::world::id_of(&crate::world::key(b'k'));
    match device.call(keeper, function, Some(path.as_bytes())) {
        Ok(None) => "nothing".to_string(),
        answer => text(answer).replace('\0', " ").trim_end().to_string(),
    }
}

fn stored(device: &Device) -> usize {
    device.kernel.machines().next().unwrap().stored_bytes
}

#[test]
fn a_path_that_a_list_of_names_could_not_show_is_refused() {
    let mut device = keeper(&[]);
    for path in ["a\0b", "a.b\n", "\u{7f}", "a..b", "."] {
        assert_ne!(ask(&mut device, "set", path), "0", "{path:?}");
        assert_eq!(ask(&mut device, "get", path), "nothing", "{path:?}");
    }
    assert_eq!((ask(&mut device, "list", ""), stored(&device)), (String::new(), 0));
}

#[test]
fn what_a_package_gives_is_read_where_it_stands_and_only_changes_are_stored() {
    let mut device =
        keeper(&[("level.one", "1"), ("level.two", "2"), ("level-3", "3"), ("z", "9")]);
    assert_eq!(stored(&device), 0);
    assert_eq!(ask(&mut device, "get", "level.one"), "1");
    assert_eq!(ask(&mut device, "list", ""), "level level-3 z");
    assert_eq!(ask(&mut device, "set", "level.one"), "0");
    let one_value = stored(&device);
    assert!((20..40).contains(&one_value), "{one_value}");
    assert_eq!(ask(&mut device, "set", "level.between"), "0");
    assert_eq!(ask(&mut device, "list", "level"), "between one two");
    assert_eq!(ask(&mut device, "get", "level.one"), "new");
    assert_eq!(ask(&mut device, "get", "level.two"), "2");
    let mut device = device.reboot();
    assert_eq!(ask(&mut device, "get", "level.one"), "new");
    assert_eq!(ask(&mut device, "list", "level"), "between one two");
}

#[test]
fn what_is_deleted_stays_deleted_and_can_be_set_again() {
    let mut device = keeper(&[("level.one", "1"), ("level.two", "2"), ("z", "9")]);
    assert_eq!(ask(&mut device, "set", "level.one"), "0");
    assert_eq!(ask(&mut device, "delete", "level"), "2", "one that was set, and one that wasn't");
    assert_eq!(ask(&mut device, "delete", "level"), "0");
    let mut device = device.reboot();
    assert_eq!(ask(&mut device, "get", "level.one"), "nothing");
    assert_eq!(ask(&mut device, "list", ""), "z");
    assert_eq!(ask(&mut device, "set", "level.two"), "0");
    assert_eq!(ask(&mut device, "get", "level.two"), "new");
    assert_eq!(ask(&mut device, "list", "level"), "two");
    assert_eq!(ask(&mut device, "delete", ""), "2");
    assert_eq!(ask(&mut device, "list", ""), "");
}

#[test]
fn setting_what_the_package_gave_writes_nothing() {
    let mut device = keeper(&[("level", "new")]);
    let programs = |device: &mut Device| device.kernel.store().flash().counters().programs;
    let before = programs(&mut device);
    assert_eq!(ask(&mut device, "set", "level"), "0");
    assert_eq!((stored(&device), programs(&mut device)), (0, before));
}

#[test]
fn an_update_keeps_changes_and_deletions_on_top_of_what_the_new_package_gives() {
    let mut device = keeper(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]);
    ask(&mut device, "set", "a");
    ask(&mut device, "delete", "b");
    device.base = [("0", "2"), ("a", "2"), ("b", "2"), ("c", "2")]
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .to_vec();
    device.try_install("keeper", KEEPER, 2, Budget::default()).unwrap();
    let mut device = device.reboot();
    assert_eq!(ask(&mut device, "list", ""), "0 a c");
    assert_eq!(ask(&mut device, "get", "a"), "new");
    assert_eq!(ask(&mut device, "get", "c"), "2");
}

#[test]
fn a_restored_tree_is_what_was_saved_and_no_more() {
    let mut device = keeper(&[("a", "1"), ("b.c", "1"), ("b.d", "1")]);
    let text =
        |path: &str, value: &str| (path.to_string(), ValueKind::Text, value.as_bytes().to_vec());
    let saved = [text("b.c", "1"), text("b.e", "5")];
    device.kernel.tenancy(device.now).restore(&name("keeper"), &saved).unwrap();
    let mut device = device.reboot();
    let mut values = Vec::new();
    let each =
        |path: &str, kind, value: &[u8]| values.push((path.to_string(), kind, value.to_vec()));
    device.kernel.each_value(&name("keeper"), each).unwrap();
    assert_eq!(values, saved);
    assert_eq!(ask(&mut device, "list", "b"), "c e");
}

#[test]
fn a_change_cut_at_any_flash_operation_is_there_or_not() {
    let begin = || {
        let mut device = keeper(&[("a", "1"), ("b.c", "1"), ("b.d", "1")]);
        ask(&mut device, "set", "b.c");
        device
    };
    let seen = |device: &mut Device| {
        [("list", ""), ("list", "b"), ("get", "b"), ("get", "b.c")]
            .map(|(function, path)| ask(device, function, path))
    };
    for (function, path) in [("set", "b"), ("delete", "b"), ("delete", "")] {
        let mut whole = begin();
        let before = seen(&mut whole);
        let done = ask(&mut whole, function, path);
        let after = seen(&mut whole);
        assert_ne!(before, after);
        let (mut old, mut new) = (0, 0);
        for operations in 0..100 {
            let mut device = begin();
            device.kernel.store().flash_mut().cut_power_after(operations, operations);
            let acknowledged = ask(&mut device, function, path) == done;
            let still_on = !device.kernel.store().flash().is_off();
            let found = seen(&mut device.reboot());
            // The package's values go before the set ones.
            let between = match (function, path) {
                ("delete", "b") => ["a b", "c", "nothing", "new"],
                ("delete", "") => ["b", "c", "nothing", "new"],
                _ => before.each_ref().map(String::as_str),
            };
            let is_old = found == before || found == between;
            let is_expected = if acknowledged { found == after } else { is_old || found == after };
            assert!(is_expected, "{function} {path}, {operations}: {found:?}");
            *(if is_old { &mut old } else { &mut new }) += 1;
            if still_on {
                break;
            }
        }
        assert!(old > 0 && new > 0, "{function} {path}: {old} before, {new} after");
    }
}

/// Sets so many values that aren't its package's, below "level"; the parameter is not used.
const FILLING: &str = r#"(data (i32.const 600) "level.set000")
    (func (export "fill") (local $number i32)
      (loop $again
        (i32.store8 (i32.const 609) (i32.add (i32.const 48) (i32.div_u (local.get $number) (i32.const 100))))
        (i32.store8 (i32.const 610) (i32.add (i32.const 48)
          (i32.rem_u (i32.div_u (local.get $number) (i32.const 10)) (i32.const 10))))
        (i32.store8 (i32.const 611) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
        (drop (call $tree_set (i32.const 600) (i32.const 12) (i32.const 1) (i32.const 0) (i32.const 3)))
        (local.set $number (i32.add (local.get $number) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $number) (i32.const 300)))))
    (func (export "many") (local $gone i32)
      (local.set $gone (call $tree_delete (i32.const 4096) (call $path)))
      (i32.store (i32.const 2048) (local.get $gone))
      (drop (call $reply (i32.const 2048) (i32.const 4))))"#;

#[test]
fn a_long_tree_is_deleted_in_several_turns_and_others_have_theirs_in_between() {
    let slice_fuel = 20_000;
    let mut device = Device::with(Config { slice_fuel, ..Config::default() });
    device.base = (0..600).map(|number| (format!("level.{number:03}"), String::new())).collect();
    device.base.push(("z".into(), "9".into()));
    let keeper = device.install("keeper", &format!("{KEEPER}{FILLING}"));
    device.base.clear();
    let other = device.install("other", KEEPER);
    device.call(keeper, "fill", None).unwrap();
    let ticket = device.deliver(keeper, "many", Some(b"level")).unwrap();
    let longest_turn = device.kernel.turn_fuel_max();
    let (mut turns, mut served) = (0, 0);
    while !device.replies.contains_key(&ticket) {
        let asked = device.deliver(other, "set", Some(b"a")).unwrap();
        for _ in 0..3 {
            assert_eq!(device.step(), Ran::Slice);
            turns += 1;
            let fuel = device.kernel.last_turn().unwrap().fuel;
            assert!(fuel <= longest_turn, "{fuel} of {longest_turn}");
            if device.replies.remove(&asked).is_some() {
                served += 1;
                break;
            }
        }
    }
    assert!(turns > 60 && served > 20, "{turns} turns, {served} answers of the other one");
    let gone = device.replies.remove(&ticket).unwrap().unwrap().unwrap();
    assert_eq!(u32::from_le_bytes(gone.try_into().unwrap()), 900);
    let mut device = device.reboot();
    assert_eq!(ask(&mut device, "list", ""), "z");
}

#[test]
fn a_deletion_that_sleep_breaks_into_goes_on_after_it() {
    let mut device = Device::with(Config { slice_fuel: 2_000, ..Config::default() });
    device.base = (0..600).map(|number| (format!("level.{number:03}"), String::new())).collect();
    let keeper = device.install("keeper", KEEPER);
    device.deliver(keeper, "delete", Some(b"level")).unwrap();
    device.settle(20);
    let mut device = device.sleep(std::time::Duration::from_secs(1), &[]);
    device.settle(2_000);
    assert_eq!(ask(&mut device, "list", ""), "");
}

#[test]
fn a_long_list_is_made_in_several_turns() {
    let names: Vec<String> = (0..400).map(|number| format!("name{number:03}")).collect();
    let slice_fuel = 20_000;
    let mut device = Device::with(Config { slice_fuel, ..Config::default() });
    device.base = names.iter().map(|name| (name.clone(), String::new())).collect();
    let keeper = device.install("keeper", KEEPER);
    let ticket = device.deliver(keeper, "list", Some(b"")).unwrap();
    let longest_turn = device.kernel.turn_fuel_max();
    let mut turns = 0;
    while device.step() == Ran::Slice {
        turns += 1;
        assert!(device.kernel.last_turn().unwrap().fuel <= longest_turn);
    }
    assert!(turns > 20, "{turns}");
    let list = device.replies.remove(&ticket).unwrap().unwrap().unwrap();
    assert_eq!(String::from_utf8(list).unwrap().trim_end_matches('\0'), names.join("\0"));
}

#[test]
fn value_that_the_owner_sets_is_read_by_the_machine_that_goes_on_and_outlasts_a_restart() {
    let mut device = keeper(&[("target", "20")]);
    ask(&mut device, "set", "seen");
    let (flash, now) = (device.kernel.store().flash().counters().programs, device.now);
    let mut owner = device.kernel.tenancy(now);
    owner.set_value(&name("keeper"), "target", ValueKind::Text, b"21.5").unwrap();
    assert!(device.kernel.store().flash().counters().programs > flash);
    assert_eq!(ask(&mut device, "get", "target"), "21.5");
    let mut device = device.reboot();
    assert_eq!(ask(&mut device, "get", "target"), "21.5");
    let deleted = device.kernel.tenancy(device.now).delete_values(&name("keeper"), "target");
    assert_eq!(deleted, Ok(1));
    assert_eq!(ask(&mut device, "get", "target"), "nothing");
    assert_eq!(ask(&mut device, "get", "seen"), "new");
}

#[test]
fn value_of_the_owner_that_is_over_a_limit_or_the_budget_is_refused_and_changes_nothing() {
    let mut device = keeper(&[]);
    let stored_bytes_max = 1024;
    let budget = Budget { stored_bytes: stored_bytes_max, ..Budget::default() };
    device.try_install("keeper", KEEPER, 2, budget).unwrap();
    let (now, keeper) = (device.now, name("keeper"));
    let mut set = |path: &str, value: &[u8]| {
        device.kernel.tenancy(now).set_value(&keeper, path, ValueKind::Bytes, value)
    };
    assert_eq!(set("a", &[0; 600]), Ok(()));
    assert_eq!(set("b", &[0; 600]), Err(InstallError::StoredBudget));
    assert_eq!(set("a", &[1; 700]), Ok(()), "what it replaces makes room");
    assert_eq!(set("a", &[0; VALUE_BYTES_MAX + 1]), Err(InstallError::Values));
    for path in ["", ".", "a..b", &"p".repeat(PATH_BYTES_MAX + 1)] {
        assert_eq!(set(path, b"1"), Err(InstallError::Values), "{path:?}");
    }
    let mut tenancy = device.kernel.tenancy(now);
    let absent = tenancy.set_value(&name("absent"), "a", ValueKind::Bytes, b"1");
    assert_eq!(absent, Err(InstallError::NotFound));
    assert_eq!(tenancy.delete_values(&keeper, ""), Err(InstallError::Values), "all of it at once");
    assert_eq!(ask(&mut device, "list", ""), "a");
}
