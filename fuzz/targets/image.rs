//! Images and suspended instances that somebody bent: refused, or harmless.
//!
//! The input says which bytes of good ones to change; their checksums are made good again.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_vm::{Image, Instance, InstanceConfig, Limits, NoHostFunctions, Value, translate};

const PROGRAM: &[u8] = include_bytes!("../seeds/vm/program.wasm");
const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 1 << 18 };
const FUEL: u64 = 5000;

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, changes)) = bytes.split_first() else { return };
    let good = translated();
    if mode & 1 == 0 {
        let bent = bend(good, changes);
        if let Ok(image) = Image::parse(&bent) {
            run_everything(&image);
        }
    } else {
        let image = Image::parse(&good).expect("what was translated is an image");
        let bent = bend(suspended(&image), changes);
        if let Ok(mut instance) = Instance::resume(&image, &bent, &CONFIG) {
            let _ = instance.run(&image, &mut FUEL.clone());
        }
    }
});

fn translated() -> Vec<u8> {
    let mut image = Vec::new();
    translate(PROGRAM, &NoHostFunctions, &Limits::default(), &mut image).expect("a good module");
    image
}

/// An instance in the middle of a recursion.
fn suspended(image: &Image<'_>) -> Vec<u8> {
    let mut instance = Instance::new(image, &CONFIG).expect("a good image");
    let function = image.function("fib").expect("the program exports fib");
    instance.prepare(image, function.index, &[Value::I32(12)]).expect("fib takes an i32");
    let _ = instance.run(image, &mut 1500);
    let mut bytes = Vec::new();
    instance.suspend(image, &mut bytes);
    bytes
}

fn run_everything(image: &Image<'_>) {
    let Ok(mut instance) = Instance::new(image, &CONFIG) else { return };
    let _ = instance.run(image, &mut FUEL.clone());
    for export in image.exports().filter_map(|export| image.function(export.name)) {
        let arguments: Vec<Value> = export.signature.params().map(Value::zero).collect();
        if instance.prepare(image, export.index, &arguments).is_ok() {
            let _ = instance.run(image, &mut FUEL.clone());
        }
    }
}

/// Sets bytes, each given by its place (two bytes) and its value, and then the checksum.
fn bend(mut bytes: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    let body = bytes.len() - 4;
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % body;
        bytes[at] = change[2];
    }
    let checksum = crc32(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
