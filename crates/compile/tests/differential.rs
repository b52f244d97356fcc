//! Compiled code and the interpreter end alike, with the same fuel, and at each stop have the same state.

#[path = "../../vm/tests/common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "../../vm/tests/differential/compare.rs"]
mod compare;
#[path = "differential/edges.rs"]
mod edges;
#[path = "differential/native.rs"]
mod native;
#[path = "../../vm/tests/common/programs.rs"]
mod programs;

use common::{Random, assemble};
use native::{Enter, Library};
use tenure_compile::{Options, to_c};
use tenure_vm::{
    Breach, Compiled, Entry, ExportKind, FunctionIndex, FunctionType, HostFunctions, Image,
    Instance, InstanceConfig, Limits, Outcome, Stay, Value, ValueType, Wall, translate, word,
};

/// Steps that a call may take in all; what takes more is cut off, in both engines alike.
const FUEL_MAX: u64 = 20_000;
/// Stops of a call that are compared one by one.
const STOPS_MAX: u32 = 8;

struct Host;

impl HostFunctions for Host {
    fn resolve(&self, module: &str, name: &str, _: &FunctionType<'_>) -> Option<u16> {
        (module == "host" && name == "twice").then_some(7)
    }
}

/// Nothing confines either engine here.
struct Open {
    /// The entry of compiled code, and the fuel that it and the interpreter used, in bytes of code.
    enter: Enter,
    compiled: u64,
    interpreted: u64,
}

impl Wall for Open {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        let left = |words: &[usize]| words[word::LIMIT].wrapping_sub(words[word::PC]) as i32 as i64;
        let before = left(stay.words);
        let (enter, is_compiled) = match stay.enter {
            Entry::Interpreter(enter) => (enter, false),
            Entry::Compiled { .. } => (self.enter, true),
        };
        // SAFETY: the words name what `stay` borrows.
        unsafe { enter(stay.expose()) };
        let used = (before - left(stay.words)) as u64;
        *if is_compiled { &mut self.compiled } else { &mut self.interpreted } += used;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Engine {
    Interpreter,
    Compiled,
    /// Either, at random, slice by slice; and now and then the machine is written down and resumed.
    Both,
}

const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 8192, memory_bytes_max: 1 << 16 };

/// A machine, and the code that was compiled from its image.
struct Machine<'i> {
    image: &'i Image<'i>,
    enter: Enter,
    instance: Instance,
    /// Fuel used by what was executed; what is owed counts.
    used: u64,
    owed: u64,
    /// Fuel that compiled code and the interpreter used by themselves.
    compiled: u64,
    interpreted: u64,
}

/// A call's end, as it is compared: how it ended, results, memory and globals, and fuel.
#[derive(Debug, PartialEq)]
struct End {
    outcome: String,
    results: Vec<Value>,
    memory: Vec<u8>,
    globals: Vec<Option<Value>>,
    used: u64,
}

impl<'i> Machine<'i> {
    fn start(image: &'i Image<'i>, enter: Enter) -> Option<Machine<'i>> {
        let instance = Instance::new_lazy(image, &CONFIG).ok()?;
        Some(Machine { image, enter, instance, used: 0, owed: 0, compiled: 0, interpreted: 0 })
    }

    /// The place where it stands, and what it owes, from its suspended bytes.
    fn position(&self) -> ([u32; 2], u64) {
        let mut bytes = Vec::new();
        self.instance.suspend(self.image, &mut bytes);
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        ([word(24), word(28)], word(36) as u64 / 2)
    }

    /// Writes the machine down, and goes on with one that begins from these bytes.
    fn suspend_and_resume(&mut self) {
        let mut bytes = Vec::new();
        self.instance.suspend(self.image, &mut bytes);
        self.instance = Instance::resume(self.image, &bytes, &CONFIG).expect("own bytes");
    }

    fn run(&mut self, slice: u64, compiled: bool) -> Outcome {
        let mut fuel = slice;
        let mut open = Open { enter: self.enter, compiled: 0, interpreted: 0 };
        let outcome = if compiled {
            let mut wall = Compiled::new(&mut open, &[], 0);
            self.instance.run_behind(self.image, &mut fuel, &mut wall)
        } else {
            self.instance.run_behind(self.image, &mut fuel, &mut open)
        };
        self.used += slice - fuel;
        self.compiled += open.compiled / 2;
        self.interpreted += open.interpreted / 2;
        if let Ok(Outcome::HostCall { .. }) = outcome {
            let argument = self.instance.host_arguments().first().map_or(0, |slot| *slot as i32);
            let twice = Value::I32(argument.wrapping_mul(2));
            self.instance.finish_host_call(&[twice]).expect("its type");
        }
        outcome.expect("nothing breaks out")
    }

    fn end(&self, outcome: Outcome) -> End {
        let done = outcome == Outcome::Done;
        End {
            outcome: format!("{outcome:?}"),
            results: if done { self.instance.results(self.image).collect() } else { Vec::new() },
            memory: self.instance.memory().to_vec(),
            globals: (0..200)
                .map_while(|n| self.instance.global(self.image, n).map(Some))
                .collect(),
            used: self.used,
        }
    }

    /// Calls a function to its end; `twin`, which only interprets, is led to each place where it stops.
    fn call(
        &mut self,
        function: FunctionIndex,
        arguments: &[Value],
        slices: &mut dyn FnMut() -> u64,
        engine: Engine,
        mut twin: Option<&mut Machine<'_>>,
    ) -> End {
        let mut random = Random::new(function.0 as u64 + 77);
        (self.used, self.owed) = (0, 0);
        let mut stops = if twin.is_some() { STOPS_MAX } else { 0 };
        self.instance.prepare(self.image, function, arguments).expect("idle");
        if let Some(twin) = &mut twin {
            (twin.used, twin.owed) = (0, 0);
            twin.instance.prepare(twin.image, function, arguments).expect("idle");
        }
        loop {
            let compiled = match engine {
                Engine::Interpreter => false,
                Engine::Compiled => true,
                Engine::Both => random.below(2) == 1,
            };
            if engine == Engine::Both && random.below(3) == 0 {
                self.suspend_and_resume();
            }
            let outcome = self.run(slices(), compiled);
            let goes_on = matches!(outcome, Outcome::OutOfFuel | Outcome::HostCall { .. });
            if stops > 0 {
                self.owed = self.position().1;
            }
            stops = stops.saturating_sub(1);
            if stops == 0 {
                twin = None;
            }
            if let Some(twin) = &mut twin
                && outcome == Outcome::OutOfFuel
            {
                // Unit by unit it stops at each instruction, and owes nothing before the next. A call that has ended
                // and owes still ends there with its last unit.
                let total = self.used + self.owed;
                while twin.used < total {
                    let outcome = twin.run(1, false);
                    let goes_on = matches!(outcome, Outcome::OutOfFuel | Outcome::HostCall { .. });
                    assert!(goes_on || twin.used == total && self.owed > 0, "{outcome:?}");
                }
                if !self.instance.is_busy() {
                    // The outermost return costs nothing: the twin may stand before it.
                    let outcome = twin.run(1, false);
                    assert!(outcome != Outcome::OutOfFuel && twin.used == total, "{outcome:?}");
                }
                assert_eq!(twin.position(), (self.position().0, 0));
                assert!(
                    twin.instance.memory() == self.instance.memory(),
                    "memory differs at a stop"
                );
            }
            if !goes_on || self.used > FUEL_MAX {
                let outcome = if goes_on { Outcome::OutOfFuel } else { outcome };
                let mut end = self.end(outcome);
                if goes_on {
                    // Cut off between different instructions.
                    (end.memory, end.used) = (Vec::new(), 0);
                    end.globals.clear();
                    self.instance.abandon();
                }
                return end;
            }
        }
    }
}

fn arguments(image: &Image<'_>, function: FunctionIndex, random: &mut Random) -> Vec<Value> {
    let signature = image.signature(function).expect("exported");
    let value = |value_type: ValueType| {
        let bits = if random.below(2) == 0 { random.below(40) } else { random.number() };
        match value_type {
            ValueType::I32 => Value::I32(bits as i32),
            ValueType::I64 => Value::I64(bits as i64),
            ValueType::F32 => Value::F32(bits as u32),
            ValueType::F64 => Value::F64(bits),
            other => Value::zero(other),
        }
    };
    signature.params().map(value).collect()
}

/// How many calls ended; and fuel that compiled code and the interpreter used where there was code.
#[derive(Debug, Default)]
struct Tally {
    ended: u32,
    compiled: u64,
    interpreted: u64,
}

/// Calls each export in all ways.
fn check(name: &str, image: &Image<'_>, enter: Enter, tally: &mut Tally) {
    let exports = image.exports().filter_map(|export| match export.kind {
        ExportKind::Function(function) => Some(function),
        _ => None,
    });
    for (nth, function) in exports.enumerate() {
        let mut random = Random::new(nth as u64);
        let arguments = arguments(image, function, &mut random);
        let mut expected = None;
        for (slice, engine) in [
            (u64::MAX, Engine::Interpreter),
            (u64::MAX, Engine::Compiled),
            (3, Engine::Compiled),
            (130, Engine::Compiled),
            (700, Engine::Compiled),
            (150, Engine::Both),
        ] {
            let Some(mut machine) = Machine::start(image, enter) else { return };
            let mut twin = Machine::start(image, enter).filter(|_| (130..1000).contains(&slice));
            let mut slices = || match slice {
                u64::MAX => FUEL_MAX + 1,
                _ => slice / 2 + random.below(slice),
            };
            if machine.instance.is_busy() {
                return;
            }
            let end = machine.call(function, &arguments, &mut slices, engine, twin.as_mut());
            tally.ended += (end.used > 0) as u32;
            if (slice, engine) == (u64::MAX, Engine::Compiled) {
                tally.compiled += machine.compiled;
                tally.interpreted += machine.interpreted;
            }
            match &expected {
                None => expected = Some(end),
                Some(expected) => {
                    assert!(
                        *expected == end,
                        "{name}, export {nth}, slices of {slice}: {} {:?} {} fuel\n{} {:?} {} fuel",
                        expected.outcome,
                        expected.results,
                        expected.used,
                        end.outcome,
                        end.results,
                        end.used
                    )
                }
            }
        }
    }
}

fn check_all(name: &str, modules: Vec<(String, Vec<u8>)>) -> Tally {
    let images: Vec<(String, Vec<u8>)> = modules
        .into_iter()
        .filter_map(|(name, wasm)| {
            let mut image = Vec::new();
            translate(&wasm, &Host, &Limits::default(), &mut image).ok()?;
            Some((name, image))
        })
        .collect();
    let library = Library::build(name, images.iter().map(|(_, image)| image.as_slice()));
    let mut tally = Tally::default();
    for (n, (name, bytes)) in images.iter().enumerate() {
        let image = Image::parse(bytes).expect("an image");
        check(name, &image, library.entry(n), &mut tally);
    }
    println!("{tally:?}");
    tally
}

#[test]
fn programs_end_alike_with_the_same_fuel() {
    let modules =
        programs::PROGRAMS.iter().map(|(name, text)| ((*name).to_owned(), assemble(text)));
    let tally = check_all("programs", modules.collect());
    assert!(tally.ended >= 36 && tally.compiled > 2 * tally.interpreted, "{tally:?}");
}

#[test]
fn divisions_cost_the_same_on_both_engines_whole_and_in_slices() {
    // A division takes some 50 units, so that slices end within one, and the call within the last slice's fuel.
    let divisions = "(f64.div (f64.const 3))".repeat(25);
    let text = format!("(module (func (export \"run\") (result f64) (f64.const 7) {divisions}))");
    let mut bytes = Vec::new();
    translate(&assemble(&text), &Host, &Limits::default(), &mut bytes).expect("valid");
    let image = Image::parse(&bytes).expect("an image");
    let library = Library::build("divisions", std::iter::once(bytes.as_slice()));
    let function = image.function("run").expect("exported").index;
    let end = |engine, slice| {
        let mut machine = Machine::start(&image, library.entry(0)).expect("it fits");
        machine.call(function, &[], &mut || slice, engine, None)
    };
    let whole = end(Engine::Interpreter, FUEL_MAX);
    assert!(whole.outcome == "Done" && whole.used > 1_000, "{} {}", whole.outcome, whole.used);
    for engine in [Engine::Interpreter, Engine::Compiled, Engine::Both] {
        for slice in [1, 23, 137, 777, FUEL_MAX] {
            let end = end(engine, slice);
            assert!(end == whole, "in slices of {slice}: {} of {}", end.used, whole.used);
        }
    }
}

/// A function that calls itself with so many values waiting that its native frame alone is larger than the
/// native stack that calls may nest on.
fn with_wide_frames() -> String {
    use std::fmt::Write as _;
    const VALUES: u32 = 160;
    let (mut before, mut after) = (String::new(), String::new());
    for n in 0..VALUES {
        let _ = write!(before, "(i64.mul (local.get 1) (i64.const {}))", 2 * n + 3);
        after += if n == 0 { "i64.xor " } else { "i64.add i64.const 9 i64.rotl " };
    }
    format!(
        "(module (func $f (param i32 i64) (result i64)
           (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
           {before} (call $f (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 7)))
           {after})
         (func (export \"run\") (result i64) (call $f (i32.const 4) (i64.const 11))))"
    )
}

#[test]
fn call_from_a_frame_larger_than_the_native_stack_goes_on() {
    let tally = check_all("wide", vec![("wide".into(), assemble(&with_wide_frames()))]);
    assert!(tally.ended >= 6 && tally.compiled > 20 * tally.interpreted, "{tally:?}");
}

#[test]
fn accesses_at_memorys_edges_trap_where_the_interpreter_does() {
    let modules = edges::of_memory().map(|text| (text.clone(), assemble(&text)));
    let tally = check_all("edges", modules.collect());
    assert!(tally.ended >= 6 * 9 * 26 * 2, "{tally:?}");
}

#[test]
fn loops_in_loops_go_on_where_they_stopped() {
    let tally = check_all("loops", vec![("loops".into(), assemble(&edges::of_loops()))]);
    assert!(tally.ended == 6 * 3 && tally.compiled > 10 * tally.interpreted, "{tally:?}");
}

#[test]
fn floats_are_rounded_and_rooted_as_in_the_interpreter() {
    let tally =
        check_all("roundings", vec![("roundings".into(), assemble(&edges::of_roundings()))]);
    let exports = 2 * edges::ROUNDINGS.len() as u32;
    // Nothing of it leaves compiled code, but for the end of a slice.
    assert!(tally.ended == 6 * exports && tally.interpreted == 0, "{tally:?}");
}

#[test]
fn bytes_are_filled_and_moved_as_by_the_interpreter_without_leaving_compiled_code() {
    let modules = edges::of_moves().map(|text| (text.clone(), assemble(&text)));
    let tally = check_all("moves", modules.collect());
    assert!(tally.ended >= 6 * 8 && tally.compiled > 10 * tally.interpreted, "{tally:?}");
}

/// So many variables wait through so many accesses, each of which would write all of them down.
fn with_many_ways_out(variables: u32, accesses: u32) -> String {
    use std::fmt::Write as _;
    let (mut set, mut sum) = (String::new(), String::new());
    for n in 0..variables {
        let _ = write!(set, "(local.set $v{n} (i64.load offset={n} (i32.const 8)))");
        let _ = write!(sum, "local.get $v{n} i64.add ");
    }
    let locals: String = (0..variables).map(|n| format!("(local $v{n} i64)")).collect();
    // An address that nothing is known of, so that none shares a comparison.
    let access = "(i32.store (i32.load (i32.const 4)) (i32.const 0))";
    format!(
        "(module (memory 1) (func $f (param i32) (result i64) {locals} {set} {} i64.const 0 {sum})
         (func (export \"run\") (result i64) (call $f (i32.const 4))))",
        access.repeat(accesses as usize)
    )
}

#[test]
fn functions_that_would_take_too_much_c_are_interpreted() {
    for (name, variables, accesses) in [("states", 1000, 500), ("text", 300, 900)] {
        let wasm = assemble(&with_many_ways_out(variables, accesses));
        let mut image = Vec::new();
        translate(&wasm, &Host, &Limits::default(), &mut image).expect("valid");
        let parsed = Image::parse(&image).expect("an image");
        let text = to_c(&parsed, &Options::default()).expect("known code");
        assert!(text.len() < 64 << 10, "{name}: {} bytes of C", text.len());
        assert!(check_all(name, vec![(name.into(), wasm)]).ended >= 6);
    }
}

#[test]
fn corpus_ends_alike_with_the_same_fuel() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../vm/tests/corpus");
    let files = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let mut files: Vec<_> = files.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let modules = files
        .iter()
        .map(|file| (file.display().to_string(), std::fs::read(file).expect("readable")));
    let tally = check_all("corpus", modules.collect());
    assert!(tally.ended > 100 && tally.compiled > 2 * tally.interpreted, "{tally:?}");
}

/// `TENURE_COMPILE_SEEDS=FROM..TO` tries others.
#[test]
fn random_modules_end_alike_with_the_same_fuel() {
    let range = std::env::var("TENURE_COMPILE_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let modules = range.unwrap_or(5000..5040).filter_map(|seed: u64| {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..2048).map(|_| random.number() as u8).collect();
        Some((format!("seed {seed}"), compare::module(&bytes, seed.is_multiple_of(2))?))
    });
    let tally = check_all("random", modules.collect());
    assert!(tally.ended > 50 && tally.compiled > 2 * tally.interpreted, "{tally:?}");
}
