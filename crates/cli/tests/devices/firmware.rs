//! Emulated boards get another firmware while they run, and keep their machines whatever becomes of it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use serde_json::Value;
use tenure_cli::home::Home;
use tenure_cli::reach::client::{Client, Device};
use tenure_package::Release;
use tenure_wire::control::{CHUNK_BYTES_MAX, Client as _, FirmwareBegin, InstallChunk};

use crate::boards::{Board, CORTEX_M, RISCV32, boot, device_at, firmware};
use crate::harness::{Chance, Process, User, free_ipv4_address, on};
use crate::kill::identity;

/// The board's firmware with its first instruction replaced by one that goes nowhere.
fn stuck(board: Board) -> Vec<u8> {
    let mut image = std::fs::read(firmware(board)).unwrap();
    if board == RISCV32 {
        // Behind the header: a jump to itself.
        image[64..68].copy_from_slice(&0x0000_006F_u32.to_le_bytes());
    } else {
        // Where the second of the vectors points, less the window and the bit that stands for Thumb.
        let vector = u32::from_le_bytes(image[0x404..0x408].try_into().unwrap());
        let at = (vector & !1) as usize - 0x1_0000;
        image[at..at + 2].copy_from_slice(&0xE7FE_u16.to_le_bytes());
    }
    image
}

/// Signs an image; gives the file.
fn signed(user: &User, image: &[u8], number: u32) -> String {
    let path = user.path(&format!("firmware-{number}.img"));
    std::fs::write(&path, image).unwrap();
    let path = path.to_str().unwrap();
    let signed = user.json(&["firmware", "sign", path, "--number", &number.to_string()]);
    assert_eq!(signed["number"], number);
    signed["file"].as_str().unwrap().to_string()
}

fn status(user: &User, device: &Process) -> Value {
    user.json(&["firmware", "status", "--device", &device.address])
}

fn update(user: &User, device: &Process, file: &str) {
    user.ok(&["firmware", "update", file, "--device", &device.address, "--json"]);
}

fn update_error(user: &User, device: &Process, file: &str) -> String {
    user.error_after(&["firmware", "update", file, "--device", &device.address])
}

#[test]
fn riscv32_takes_a_new_firmware_and_goes_back_from_one_that_stands_still() {
    check_update(RISCV32);
}

#[test]
fn cortex_m_takes_a_new_firmware_and_goes_back_from_one_that_stands_still() {
    check_update(CORTEX_M);
}

fn check_update(board: Board) {
    let user = User::new();
    let image = std::fs::read(firmware(board)).unwrap();
    let idle = device_at(board, &user, "cellar", &free_ipv4_address());
    let mut device = device_at(board, &user, "attic", &free_ipv4_address());
    user.install(&device, &["counter", "thermostat"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    let before = identity(&user, &device);
    assert_eq!(status(&user, &device)["slot"], "A");

    // A person who isn't the owner signs in vain, and nothing goes back.
    let stranger = User::new();
    let error = update_error(&user, &device, &signed(&stranger, &image, 2));
    assert!(error.contains("signed by neither the device's owner nor the maker"), "{error}");
    let error = update_error(&user, &device, &signed(&user, &image, 1));
    assert!(error.contains("number 1 runs, and only a greater one may follow"), "{error}");
    let runs = status(&user, &device)["board"].as_str().unwrap().to_string();
    let unfit = [("esp32c3", "the firmware is for `esp32c3`"), (&runs, "machines of format 2")];
    let keys = Client::new(&Home::at(user.home())).unwrap();
    let path = user.path("unfit.firmware");
    for (made_for, why) in unfit {
        let release = Release::new(made_for, 2, 2, &image);
        let file = release.to_file(&image, &keys.keys().signing_key).unwrap();
        std::fs::write(&path, file).unwrap();
        let error = update_error(&user, &device, path.to_str().unwrap());
        assert!(error.contains(why), "{error}");
    }

    update(&user, &device, &signed(&user, &image, 2));
    device.wait_for_words("firmware 2 in slot B, on trial");
    device.wait_for_words("started by software reset");
    device.wait_for_words("firmware 2 is well, and stays");
    let now = status(&user, &device);
    assert_eq!((&now["number"], &now["slot"]), (&2.into(), &"B".into()));
    assert_eq!(now["other"]["fate"], "the one before");

    // One that stands still is given up within one period of the watchdog, and tried no more.
    let error = update_error(&user, &device, &signed(&user, &stuck(board), 3));
    assert!(error.contains("gave firmware 3 up and runs 2 again: ended by watchdog"), "{error}");
    device.wait_for_words("firmware 3 in slot A, on trial");
    device.wait_for_words("firmware 2 in slot B");
    device.wait_for_words("started by watchdog");
    assert_eq!(status(&user, &device)["on_trial"], false);
    assert_eq!(identity(&user, &device), before);
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "18.0");
    assert_eq!(user.call(on(&device), &["counter", "add"]), "2");
    // Its neighbour, who had nothing to do meanwhile, was bitten by no watchdog.
    assert_eq!(status(&user, &idle)["started_by"], "power on");
}

#[test]
fn riscv32_takes_what_its_maker_signed_from_its_owner_and_from_nobody_else() {
    let (user, maker) = (User::new(), User::new());
    let key = maker.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_string();
    let image = std::fs::read(firmware(RISCV32)).unwrap();
    let address = free_ipv4_address();
    let made = ["--listen", &address, "--maker", &key];
    let mut device = boot(RISCV32, &user, "attic", None, &made);
    device.address = address.clone();
    user.ok(&["enrol", &address]);
    let by_maker = signed(&maker, &image, 2);
    let error = update_error(&maker, &device, &by_maker);
    assert!(error.contains("another owner"), "{error}");
    update(&user, &device, &by_maker);
    device.wait_for_words("firmware 2 is well, and stays");
    assert_eq!(status(&user, &device)["number"], 2);
    // One whose settings name no maker takes its owner's alone.
    device.kill();
    let mut device = boot(RISCV32, &user, "attic", None, &["--listen", &address]);
    device.address = address;
    let error = update_error(&user, &device, &signed(&maker, &image, 3));
    assert!(error.contains("signed by neither the device's owner nor the maker"), "{error}");
    assert_eq!(status(&user, &device)["number"], 2);
}

/// Brings a firmware to a device, in another thread; tells each part that was taken, and the end, if it is to
/// come to one.
fn bring(
    user: &User,
    device: &Process,
    file: &str,
    to_the_end: bool,
) -> (Receiver<usize>, JoinHandle<()>) {
    let (home, address) = (Home::at(user.home()), device.socket_address());
    let file = std::fs::read(PathBuf::from(file)).unwrap();
    let (sender, taken) = channel();
    let bringer = std::thread::spawn(move || {
        let firmware = Release::from_file(&file).unwrap();
        let mut client = Client::new(&home).unwrap();
        let Device { route, .. } = client.device(&address.into()).unwrap();
        let begin = FirmwareBegin { release: firmware.signed.to_vec() };
        client.at(&route).firmware_begin(begin).unwrap();
        for (index, bytes) in firmware.image.chunks(CHUNK_BYTES_MAX).enumerate() {
            let part = InstallChunk { offset: (index * CHUNK_BYTES_MAX) as u32, bytes };
            if client.at(&route).firmware_chunk(part).is_err() {
                return;
            }
            let _ = sender.send(index);
        }
        if to_the_end && client.at(&route).firmware_commit(()).is_ok() {
            let _ = sender.send(usize::MAX);
        }
    });
    (taken, bringer)
}

#[test]
fn riscv32_whose_power_is_cut_during_an_update_starts_the_old_or_the_new_firmware() {
    check_cuts(RISCV32, &[Moment::Transfer, Moment::Transfer, Moment::End, Moment::Trial]);
}

#[test]
fn cortex_m_whose_power_is_cut_during_an_update_starts_the_old_or_the_new_firmware() {
    check_cuts(CORTEX_M, &[Moment::Transfer, Moment::End, Moment::Trial]);
}

/// When the power goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// In the middle of the transfer.
    Transfer,
    /// Once all of it has come.
    End,
    /// In the first moments of the trial.
    Trial,
}

fn check_cuts(board: Board, moments: &[Moment]) {
    let user = User::new();
    let mut chance = Chance::new();
    let image = std::fs::read(firmware(board)).unwrap();
    let parts = image.len().div_ceil(CHUNK_BYTES_MAX);
    let address = free_ipv4_address();
    let mut device = device_at(board, &user, "attic", &address);
    user.install(&device, &["counter"]);
    let mut number = 1;
    for (moment, count) in moments.iter().zip(1..) {
        assert_eq!(user.call(on(&device), &["counter", "add"]), format!("{count}"));
        let file = signed(&user, &image, number + 1);
        let to_the_end = *moment != Moment::Transfer;
        let (taken, bringer) = bring(&user, &device, &file, to_the_end);
        let wanted = match moment {
            Moment::Transfer => chance.below(parts),
            Moment::End | Moment::Trial => usize::MAX,
        };
        assert!(taken.iter().any(|part| part == wanted), "part {wanted} was taken");
        if *moment == Moment::Trial {
            device.wait_for_words("on trial");
        } else if *moment == Moment::Transfer {
            // The running image goes on meanwhile.
            assert_eq!(user.call(on(&device), &["counter", "value"]), format!("{count}"));
        }
        device.kill();
        bringer.join().unwrap();
        device = boot(board, &user, "attic", None, &["--listen", &address]);
        device.address = address.clone();
        let now = status(&user, &device);
        let runs = now["number"].as_u64().unwrap() as u32;
        if *moment == Moment::Transfer {
            assert_eq!(runs, number, "what hasn't come whole isn't started");
        }
        assert!(runs == number || runs == number + 1, "{now}");
        assert_eq!(status(&user, &device)["on_trial"], false, "it has heard from us");
        number = runs;
    }
    let counted = moments.len().to_string();
    assert_eq!(user.call(on(&device), &["counter", "value"]), counted);
    update(&user, &device, &signed(&user, &image, number + 1));
    assert_eq!(status(&user, &device)["number"], number + 1);
    assert_eq!(user.call(on(&device), &["counter", "value"]), counted);
}
