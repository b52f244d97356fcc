//! The interpreter behind a second wall ends as without, and what a broken one says is refused.

mod common;
#[path = "common/programs.rs"]
mod programs;

use common::assemble;
use programs::PROGRAMS;
use tenure_vm::{
    Breach, BreachCause, Compiled, Entry, FunctionType, HostFunctions, Image, Instance,
    InstanceConfig, Limits, Outcome, Stay, Value, Wall, flow, translate, word,
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

/// Runs the interpreter, and says that each stay took more than it counted.
struct Clocked {
    owes: u32,
    stays: u64,
}

const OWED: u32 = 10;

impl Wall for Clocked {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        interpret(&mut stay);
        (self.owes, self.stays) = (self.owes + OWED, self.stays + 1);
        Ok(())
    }

    fn take_overdraft(&mut self) -> u32 {
        core::mem::take(&mut self.owes)
    }
}

#[test]
fn what_the_clock_saw_is_paid_before_a_call_has_ended_whatever_the_slices() {
    for (name, text) in PROGRAMS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("an image");
        for slice in [3, 100, 100_000] {
            let (results, memory, used) = run(&image, slice, None).expect("no wall");
            let mut clocked = Clocked { owes: 0, stays: 0 };
            let ran = run(&image, slice, Some(&mut clocked)).expect("nothing breaks out");
            if ran.2 >= 1_000_000 {
                continue;
            }
            assert_eq!((&ran.0, &ran.1), (&results, &memory), "{name} in slices of {slice}");
            let paid = used + clocked.stays * u64::from(OWED);
            assert_eq!(ran.2, paid, "{name} in slices of {slice}");
            assert!(clocked.stays > 0);
        }
    }
}

/// Breaks out at once. Until then it took more than it counted.
struct Breaking {
    owes: u32,
}

const TOO_LONG: Breach = Breach { cause: BreachCause::Time, address: 0, at: 0 };

impl Wall for Breaking {
    fn confine(&mut self, _: Stay<'_>) -> Result<(), Breach> {
        Err(TOO_LONG)
    }

    fn take_overdraft(&mut self) -> u32 {
        core::mem::take(&mut self.owes)
    }
}

#[test]
fn what_the_clock_saw_is_paid_by_a_call_that_broke_out_as_far_as_its_fuel_lasts() {
    let bytes = image_of("(module (func (export \"run\")))");
    let image = Image::parse(&bytes).expect("an image");
    let function = image.function("run").expect("exported").index;
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 0 };
    let used = |owes| {
        let mut fuel = 1_000;
        let mut instance = Instance::new_lazy(&image, &config).expect("starts");
        instance.prepare(&image, function, &[]).expect("idle");
        let ended = instance.run_behind(&image, &mut fuel, &mut Breaking { owes });
        assert_eq!(ended, Err(TOO_LONG));
        assert!(!instance.is_busy());
        1_000 - fuel
    };
    let entered = used(0);
    assert!(entered < 10, "{entered} units");
    assert_eq!([used(300), used(5_000)], [entered + 300, 1_000]);
}

/// Runs the interpreter. In the place of compiled code something comes back at once, and leaves all to it.
#[derive(Default)]
struct Idle {
    compiled: u64,
    interpreted: u64,
}

impl Wall for Idle {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        if let Entry::Compiled { .. } = stay.enter {
            stay.words[word::FLOW] = flow::INTERPRET;
            self.compiled += 1;
        } else {
            interpret(&mut stay);
            self.interpreted += 1;
        }
        Ok(())
    }
}

#[test]
fn code_that_leaves_all_to_the_interpreter_is_entered_once_in_256_units() {
    let text = "(module (func (export \"run\") (local i32)
        (loop (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1)))
          (i32.const 20000))))))";
    let bytes = image_of(text);
    let image = Image::parse(&bytes).expect("an image");
    let expected = run(&image, 1_000_000, None).expect("no wall");
    let (mut idle, mut fuel) = (Idle::default(), 1_000_000);
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 2048 };
    let mut instance = Instance::new_lazy(&image, &config).expect("starts");
    let function = image.function("run").expect("exported").index;
    instance.prepare(&image, function, &[]).expect("idle");
    let outcome = instance.run_behind(&image, &mut fuel, &mut Compiled::new(&mut idle, &[], 0));
    assert_eq!(outcome, Ok(Outcome::Done));
    let used = 1_000_000 - fuel;
    assert_eq!(used, expected.2, "the same fuel");
    assert!(used > 50_000, "{used} units");
    assert!((used / 320..=used / 256 + 1).contains(&idle.compiled), "{}", idle.compiled);
    assert!(idle.interpreted <= idle.compiled + 1, "{}", idle.interpreted);
}

/// In the place of compiled code something comes back at once, and says this.
struct Says(usize);

impl Wall for Says {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        if let Entry::Compiled { .. } = stay.enter {
            stay.words[word::FLOW] = self.0;
        } else {
            interpret(&mut stay);
        }
        Ok(())
    }
}

#[test]
fn code_that_comes_back_with_fuel_and_without_a_reason_is_refused() {
    let bytes = image_of("(module (func (export \"run\") (loop (br 0))))");
    let image = Image::parse(&bytes).expect("an image");
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 2048 };
    let function = image.function("run").expect("exported").index;
    const ON_WITH_THE_NEXT: usize = 0;
    for says in [ON_WITH_THE_NEXT, flow::CHECK] {
        let mut instance = Instance::new_lazy(&image, &config).expect("starts");
        instance.prepare(&image, function, &[]).expect("idle");
        let mut fuel = 1_000_000;
        let mut wall = Says(says);
        let outcome = instance.run_behind(&image, &mut fuel, &mut Compiled::new(&mut wall, &[], 0));
        assert_eq!(outcome.map_err(|breach| breach.cause), Err(BreachCause::Numbers), "{says}");
    }
}
