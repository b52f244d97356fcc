//! An instance written down at any instruction, and rebuilt, ends as it would have without; and no bytes
//! make `resume` or what follows panic.

mod common;
#[path = "common/programs.rs"]
mod programs;

use common::{Random, assemble};
use programs::PROGRAMS;
use tenure_vm::{
    FunctionType, HostFunctions, Image, Instance, InstanceConfig, Limits, Outcome, TrapKind, Value,
    translate,
};

struct Host;

impl HostFunctions for Host {
    fn resolve(&self, module: &str, name: &str, _: &FunctionType<'_>) -> Option<u16> {
        (module == "host" && name == "twice").then_some(7)
    }
}

fn config() -> InstanceConfig {
    InstanceConfig { stack_bytes: 4096, memory_bytes_max: 2048 }
}

fn image_of(text: &str) -> Vec<u8> {
    let mut image = Vec::new();
    translate(&assemble(text), &Host, &Limits::default(), &mut image).expect("valid");
    image
}

/// How a run ends: results or trap, memory, fuel.
#[derive(Debug, PartialEq)]
struct End {
    results: Result<Vec<Value>, TrapKind>,
    memory: Vec<u8>,
    fuel: u64,
}

/// Runs with `slice` fuel at a time and calls `between` whenever execution has stopped.
fn run(image: &Image<'_>, slice: u64, mut between: impl FnMut(Instance) -> Instance) -> End {
    let mut instance = Instance::new_lazy(image, &config()).expect("starts");
    let function = image.function("run").expect("exported").index;
    instance.prepare(image, function, &[]).expect("idle");
    let mut used = 0;
    loop {
        let mut fuel = slice;
        let outcome = instance.run(image, &mut fuel);
        used += slice - fuel;
        instance = between(instance);
        let results = match outcome {
            Outcome::OutOfFuel => {
                assert_eq!(fuel, 0);
                continue;
            }
            Outcome::HostCall { function } => {
                assert_eq!(function, 7);
                let twice = instance.host_arguments()[0] as i32 * 2;
                instance.finish_host_call(&[Value::I32(twice)]).expect("waiting");
                instance = between(instance);
                continue;
            }
            Outcome::Done => Ok(instance.results(image).collect()),
            Outcome::Trap(trap) => Err(trap.kind),
        };
        return End { results, memory: instance.memory().to_vec(), fuel: used };
    }
}

#[test]
fn suspended_everywhere_same_end() {
    for (name, text) in PROGRAMS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("just made");
        let expected = run(&image, 1 << 40, |instance| instance);
        println!("{name}: {:?}", expected.results);
        for slice in [1, 2, 3, 7, 50, 1000] {
            assert_eq!(
                run(&image, slice, |instance| instance),
                expected,
                "{name} in slices of {slice}"
            );
            let resumed = run(&image, slice, |instance| {
                let mut written = Vec::new();
                instance.suspend(&image, &mut written);
                let again = Instance::resume(&image, &written, &config()).expect("own bytes");
                let mut twice = Vec::new();
                again.suspend(&image, &mut twice);
                assert_eq!(written, twice);
                again
            });
            assert_eq!(resumed, expected, "{name} suspended in slices of {slice}");
        }
    }
}

fn keeps(instance: Instance, _: &Image<'_>) -> Instance {
    instance
}

fn forgets(mut instance: Instance, image: &Image<'_>) -> Instance {
    instance.forget_dead_slots(image);
    instance
}

fn is_resumed(instance: Instance, image: &Image<'_>) -> Instance {
    let mut written = Vec::new();
    instance.suspend(image, &mut written);
    Instance::resume(image, &written, &config()).expect("own bytes")
}

#[test]
fn instance_that_forgets_its_dead_slots_is_the_one_that_is_resumed() {
    let mut differed = 0;
    for (name, text) in PROGRAMS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("just made");
        for slice in [7, 50] {
            let states = |between: fn(Instance, &Image<'_>) -> Instance| {
                let mut states = Vec::new();
                run(&image, slice, |instance| {
                    let mut written = Vec::new();
                    instance.suspend(&image, &mut written);
                    states.push(written);
                    between(instance, &image)
                });
                states
            };
            let resumed = states(is_resumed);
            assert!(states(forgets) == resumed, "{name} in slices of {slice}");
            differed += usize::from(states(keeps) != resumed);
        }
    }
    assert!(differed > 0, "no program leaves anything in dead slots");
}

/// CRC-32 as the format has it, so that forged bytes get past it.
fn seal(bytes: &mut [u8]) {
    let body = bytes.len() - 4;
    let mut crc = !0u32;
    for &byte in &bytes[..body] {
        crc ^= byte as u32;
        for _ in 0..8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    bytes[body..].copy_from_slice(&(!crc).to_le_bytes());
}

#[test]
fn forged_bytes_never_panic() {
    let mut random = Random::new(0x7E17_0001);
    let mut resumed = 0;
    for (name, text) in PROGRAMS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("just made");
        let mut states = Vec::new();
        run(&image, 5, |instance| {
            let mut written = Vec::new();
            instance.suspend(&image, &mut written);
            states.push(written);
            instance
        });
        for state in states.iter().step_by(3) {
            for _ in 0..40 {
                let mut forged = state.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(forged.len() as u64) as usize;
                    forged[at] = random.number() as u8;
                }
                if random.below(8) == 0 {
                    forged.truncate(random.below(forged.len() as u64) as usize);
                }
                if forged.len() >= 4 {
                    seal(&mut forged);
                }
                if let Ok(mut instance) = Instance::resume(&image, &forged, &config()) {
                    resumed += 1;
                    let outcome = instance.run(&image, &mut 2000);
                    let _ = (instance.backtrace(&image), outcome, name);
                }
            }
        }
    }
    assert!(resumed > 100, "only {resumed} forgeries were good enough to run");
}

#[test]
fn damaged_images_are_refused() {
    let bytes = image_of(PROGRAMS[0].1);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Image::parse(&damaged).is_err(), "flip at {at}");
    }
    for length in 0..bytes.len() {
        assert!(Image::parse(&bytes[..length]).is_err(), "cut at {length}");
    }
}

/// Whatever `Image::parse` accepts may be run: forged images with a right checksum neither panic nor
/// reach beyond their memory.
#[test]
fn forged_images_run_safely_or_not_at_all() {
    let mut random = Random::new(0x7E17_0002);
    let mut accepted = 0;
    for (_, text) in PROGRAMS {
        let bytes = image_of(text);
        for _ in 0..1500 {
            let mut forged = bytes.clone();
            for _ in 0..=random.below(2) {
                let at = random.below(forged.len() as u64) as usize;
                forged[at] = random.number() as u8;
            }
            seal(&mut forged);
            let Ok(image) = Image::parse(&forged) else { continue };
            accepted += 1;
            let Ok(mut instance) = Instance::new_lazy(&image, &config()) else { continue };
            let Some(export) = image.function("run") else { continue };
            if instance.prepare(&image, export.index, &[]).is_ok() {
                let _ = instance.run(&image, &mut 5000);
                let _ = instance.backtrace(&image);
            }
        }
    }
    assert!(accepted > 100, "only {accepted} forgeries were accepted");
}
