//! Packages that are damaged, forged or hostile: refused with the reason, and nothing is lost.

use tenure_cli::home::Home;
use tenure_cli::reach::client::Client;
use tenure_package::{CodeKind, Manifest, PackageBuilder};
use tenure_wire::control::{Client as _, InstallBegin};

use crate::boards::{RISCV32, device_at};
use crate::guests::package;
use crate::harness::{Process, User, free_ipv4_address, on};

/// A device with a machine that must go on as it was.
fn device_with_counter(user: &User) -> Process {
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    device
}

fn still_counts(user: &User, device: &Process) {
    assert_eq!(user.call(on(device), &["counter", "value"]), "7");
    let list = user.json(&["list", "--device", &device.address]);
    assert_eq!(list["machines"].as_array().unwrap().len(), 1);
}

/// The error of `tenure install` about a file with these bytes, less the file's name.
fn complaint(user: &User, device: &Process, bytes: &[u8]) -> String {
    let path = user.path("bad.tenure");
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let error = user.error(&["install", path, "--grant", "none", "--device", &device.address]);
    let without = error.strip_prefix(path).and_then(|rest| rest.strip_prefix(": "));
    without.unwrap_or_else(|| panic!("it names the file: {error}")).to_string()
}

/// A package around this code that its tenant signed, whatever the code is.
fn signed(user: &User, code: Vec<u8>) -> Vec<u8> {
    let manifest = Manifest {
        exports: vec!["entry".into()],
        ..Manifest::new("hostile".parse().unwrap(), "1.0.0".parse().unwrap())
    };
    let key = Home::at(user.home()).tenant_key().unwrap();
    PackageBuilder::new(manifest, code).unwrap().sign(&key).unwrap()
}

fn counters_wasm() -> Vec<u8> {
    let bytes = std::fs::read(package("counter")).unwrap();
    tenure_package::Package::parse(&bytes).unwrap().code(CodeKind::WebAssembly).unwrap().to_vec()
}

#[test]
fn damaged_package_is_refused_before_it_is_sent() {
    let user = User::new();
    let device = device_with_counter(&user);
    let whole = std::fs::read(package("thermostat")).unwrap();
    for length in [0, 3, 40, whole.len() / 2, whole.len() - 1] {
        let error = complaint(&user, &device, &whole[..length]);
        assert!(
            error.contains("`tenure build`") || error.contains("build it again"),
            "{length}: {error}"
        );
    }
    let text = complaint(&user, &device, b"name = \"thermostat\"\nversion = \"0.1.0\"\n");
    assert!(text.contains("not a package; make one with `tenure build`"), "{text}");
    let mut flipped = whole.clone();
    for at in [whole.len() / 2, whole.len() - 1] {
        flipped[at] ^= 1;
        let error = complaint(&user, &device, &flipped);
        assert!(
            error.contains("was not signed by the tenant it names: it was changed or forged"),
            "{error}"
        );
        flipped[at] ^= 1;
    }
    let endless = user.error(&["install", "/dev/zero", "--device", &device.address]);
    assert!(endless.contains("/dev/zero: not a package"), "{endless}");
    let missing = user.error(&["install", "missing.tenure", "--device", &device.address]);
    assert!(
        missing.contains("can't read missing.tenure; make it with `tenure build`"),
        "{missing}"
    );
    still_counts(&user, &device);
}

/// Hostile code that somebody did sign comes as far as the device, which refuses it.
#[test]
fn hostile_wasm_in_a_signed_package_is_refused_by_the_device() {
    let user = User::new();
    let device = device_with_counter(&user);
    let wasm = counters_wasm();
    let magic = b"\0asm\x01\0\0\0";
    let section = |id: u8, body: &[u8]| [&magic[..], &[id, body.len() as u8], body].concat();
    let cases: Vec<Vec<u8>> = vec![
        vec![],
        magic[..5].to_vec(),
        wasm[..wasm.len() / 2].to_vec(),
        wasm[..wasm.len() - 1].to_vec(),
        b"not wasm at all".to_vec(),
        // A billion types; a section that claims four gigabytes; an unknown import.
        section(1, &[0xFF, 0xFF, 0xFF, 0xFF, 0x03]),
        [&magic[..], &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]].concat(),
        [section(1, &[1, 0x60, 0, 0]), vec![2, 9, 1, 1, b'x', 3, b'f', b'o', b'e', 0, 0]].concat(),
        // A memory of 65,537 pages, one more than 32 bits address.
        section(5, &[1, 0, 0x81, 0x80, 0x04]),
    ];
    for code in cases {
        let error = complaint(&user, &device, &signed(&user, code.clone()));
        assert!(error.starts_with("refused: its wasm: "), "{code:02x?}: {error}");
    }
    // One of 65,536 is valid, and has nothing within a budget of less.
    let module = wat::parse_str("(module (memory 65536) (func (export \"entry\")))").unwrap();
    std::fs::write(user.path("large.tenure"), signed(&user, module)).unwrap();
    let place = ["--device", &device.address];
    user.ok(&[&["install", "large.tenure", "--grant", "all"], &place[..]].concat());
    user.error(&[&["call", "hostile", "entry"], &place[..]].concat());
    let list = user.json(&[&["list"], &place[..]].concat());
    let machines = list["machines"].as_array().unwrap();
    let hostile = machines.iter().find(|machine| machine["name"] == "hostile").unwrap();
    assert_eq!(hostile["memory_bytes"], 0, "{hostile}");
    user.ok(&[&["remove", "hostile"], &place[..]].concat());
    still_counts(&user, &device);
}

/// No package that can be made is so long; whoever sends one anyway is told by the device.
#[test]
fn package_that_the_device_has_no_room_for_is_refused() {
    let user = User::new();
    let device = device_with_counter(&user);
    let mut long = std::fs::read(package("thermostat")).unwrap();
    long.resize(3 << 20, 0);
    let error = complaint(&user, &device, &long);
    assert!(error.contains("bytes follow the package; copy or build it again"), "{error}");
    let mut client = Client::new(&Home::at(user.home())).unwrap();
    let place = client.device(&device.socket_address().into()).unwrap().route;
    let begin = InstallBegin { bytes: 3 << 20 };
    let error = client.at(&place).install_begin(begin).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the device is full: the package has 3145728 bytes, the device takes 2097152; take off \
         what you don't need (`tenure remove`, `tenure secret remove`), or make it smaller"
    );
    still_counts(&user, &device);
}

#[test]
fn run_refuses_what_install_refuses() {
    let user = User::new();
    let path = user.path("bad.tenure");
    std::fs::write(&path, signed(&user, b"not wasm".to_vec())).unwrap();
    let error = user.error(&["run", path.to_str().unwrap()]);
    assert!(error.contains("bad.tenure: refused: its wasm: "), "{error}");
}

/// A call with many arguments takes three times its wasm's bytes as code: that of 110 KB in one function fits no board's
/// memory.
fn module_of_a_long_function() -> Vec<u8> {
    const ARGUMENTS: usize = 64;
    let call = format!("(call $taken {})", "(i32.const 1)".repeat(ARGUMENTS));
    let lines = call.repeat(110_000 / (2 * ARGUMENTS + 2));
    let params = "i32 ".repeat(ARGUMENTS);
    let text = format!("(module (func $taken (param {params})) (func (export \"entry\") {lines}))");
    wat::parse_str(text).unwrap()
}

#[test]
fn riscv32_refuses_a_package_that_it_has_no_memory_to_translate_and_goes_on() {
    let user = User::new();
    let address = free_ipv4_address();
    let device = device_at(RISCV32, &user, "attic", &address);
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    let boots = || user.json(&["status", "--device", &device.address])["boots"].as_u64().unwrap();
    let before = boots();
    let error = complaint(&user, &device, &signed(&user, module_of_a_long_function()));
    assert!(error.contains("its wasm: out of memory while it was translated at byte "), "{error}");
    still_counts(&user, &device);
    assert_eq!(boots(), before, "the device restarted");
}
