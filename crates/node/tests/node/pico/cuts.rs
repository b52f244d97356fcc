//! The power is cut in the middle of flash operations of an install.

use super::*;

/// A Pico that listens and is enrolled; the same to the instruction each time.
fn enrolled() -> (World, VerifyingKey) {
    // The other tests' chips have other seeds, and so other files.
    let mut world = World::power_on(&["attic"], 101);
    world.run_until("it listens", |world| world.picos[0].chip.console.contains("not enrolled"));
    let key = world.enrol(0);
    (world, key)
}

#[test]
#[ignore = "needs the emulator of an RP2040: see above"]
fn power_that_is_cut_in_an_install_leaves_all_of_the_machine_or_none_of_it() {
    let (mut world, device) = enrolled();
    let before = world.picos[0].chip.flash_operations;
    world.install_or_cut(0, device, "thermostat", THERMOSTAT).expect("the power stays");
    let operations = world.picos[0].chip.flash_operations - before;
    println!("an install takes {operations} flash operations");
    assert!(operations >= 3);
    for cut in [operations / 2, operations] {
        let (mut world, device) = enrolled();
        world.picos[0].chip.cut_in(cut);
        let installed = world.install_or_cut(0, device, "thermostat", THERMOSTAT);
        let cuts = world.picos[0].chip.cuts;
        assert!(installed.is_none() && cuts == 1, "cut {cut}");
        world.begin_command(0);
        let listens = |world: &World| world.picos[0].key_once_listening().is_some();
        world.run_until("it listens again", listens);
        let thermostat = match world.find(0, "thermostat") {
            Some(whole) => whole,
            None => world.install(0, device, "thermostat", THERMOSTAT),
        };
        let read = world.call(0, &thermostat, "read", &[]);
        assert_eq!(read, Ok(Some(b"21.0".to_vec())), "cut {cut}");
    }
}
