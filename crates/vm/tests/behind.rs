//! The interpreter behind a second wall ends as without, and what a broken one says is refused.

mod common;
#[path = "common/programs.rs"]
mod programs;

use common::assemble;
use programs::PROGRAMS;
use tenure_vm::{
    Breach, BreachCause, Entry, FunctionType, HostFunctions, Image, Instance, InstanceConfig,
    Limits, Outcome, Stay, Value, Wall, translate,
};

struct Host;

impl HostFunctions for Host {
    fn resolve(&self, module: &str, name: &str, _: &FunctionType<'_>) -> Option<u16> {
        (module == "host" && name == "twice").then_some(7)
    }
}

fn image_of(text: &str) -> Vec<u8> {
    let mut image = Vec::new();
    translate(&assemble(text), &Host, &Limits::default(), &mut image).expect("valid");
    image
}

fn interpret(stay: &mut Stay<'_>) {
    let Entry::Interpreter(enter) = stay.enter else { panic!("nothing is compiled") };
    // SAFETY: the words are the interpreter's, and the stay borrows what they name.
    unsafe { enter(stay.expose()) };
}

/// Runs the interpreter as a board does, but with nothing to stop it.
struct Open;

impl Wall for Open {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        interpret(&mut stay);
        Ok(())
    }
}

/// Runs it, and puts a number in place of one of those that it comes back with.
struct Lying {
    place: usize,
    number: usize,
}

impl Wall for Lying {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        interpret(&mut stay);
        if let Some(word) = stay.words.get_mut(self.place) {
            *word = self.number;
        }
        Ok(())
    }
}

/// Results, memory and fuel of a run in slices, or how it tried to leave.
fn run(
    image: &Image<'_>,
    slice: u64,
    mut wall: Option<&mut dyn Wall>,
) -> Result<(Vec<Value>, Vec<u8>, u64), Breach> {
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 2048 };
    let mut instance = Instance::new_lazy(image, &config).expect("starts");
    let function = image.function("run").expect("exported").index;
    instance.prepare(image, function, &[]).expect("idle");
    let mut used = 0;
    loop {
        let mut fuel = slice;
        let outcome = match &mut wall {
            Some(wall) => instance.run_behind(image, &mut fuel, &mut **wall)?,
            None => instance.run(image, &mut fuel),
        };
        used += slice - fuel;
        match outcome {
            Outcome::OutOfFuel if used < 1_000_000 => {}
            Outcome::HostCall { .. } => {
                let argument = instance.host_arguments().first().map_or(0, |slot| *slot as i32);
                let twice = Value::I32(argument.wrapping_mul(2));
                instance.finish_host_call(&[twice]).expect("its type");
            }
            _ => {
                let results = instance.results(image).collect();
                return Ok((results, instance.memory().to_vec(), used));
            }
        }
    }
}

#[test]
fn run_behind_a_wall_ends_as_without() {
    for (name, text) in PROGRAMS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("an image");
        for slice in [3, 100, 100_000] {
            let without = run(&image, slice, None);
            assert_eq!(run(&image, slice, Some(&mut Open)), without, "{name} in slices of {slice}");
        }
    }
}

#[test]
fn numbers_that_cannot_be_are_refused_and_none_panics() {
    let bytes = image_of(PROGRAMS[0].1);
    let image = Image::parse(&bytes).expect("an image");
    let mut refused = 0;
    for place in 0..14 {
        for number in [0, 1, 7, 1 << 20, usize::MAX / 2, usize::MAX - 7, usize::MAX] {
            for slice in [3, 100_000] {
                let ran = run(&image, slice, Some(&mut Lying { place, number }));
                if let Err(breach) = ran {
                    assert_eq!(breach.cause, BreachCause::Numbers);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20, "{refused} lies were seen through");
}
