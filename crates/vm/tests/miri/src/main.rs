//! Translates modules and runs their exports for a while, suspended and resumed between slices, every other
//! of which runs as it does behind a board's wall.
//!
//! Whatever they compute: what matters is that Miri finds nothing. Takes the seconds after which no further
//! module is begun, then the modules: `cargo xtask miri`.

use std::time::{Duration, Instant};

use tenure_vm::{
    Breach, Entry, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Stay, Value,
    Wall, translate,
};

const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 2048, memory_bytes_max: 2048 };
const EXPORTS_MAX: usize = 3;
const SLICES: [u64; 8] = [1, 1, 2, 3, 40, 150, 200, 300];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).expect("seconds");
    let begun = Instant::now();
    let (mut modules, mut calls, mut left) = (0, 0, 0);
    for file in arguments {
        if begun.elapsed() > Duration::from_secs(seconds) {
            left += 1;
            continue;
        }
        modules += 1;
        let wasm = std::fs::read(&file).expect("the file can be read");
        let mut bytes = Vec::new();
        if translate(&wasm, &NoHostFunctions, &Limits::default(), &mut bytes).is_err() {
            continue;
        }
        let image = Image::parse(&bytes).expect("just made");
        let Ok(mut instance) = Instance::new_lazy(&image, &CONFIG) else { continue };
        let _ = run(&image, &mut instance);
        let functions: Vec<_> =
            image.exports().filter_map(|export| image.function(export.name)).collect();
        for function in functions.iter().take(EXPORTS_MAX) {
            let arguments: Vec<Value> = function.signature.params().map(Value::zero).collect();
            instance.abandon();
            if instance.prepare(&image, function.index, &arguments).is_ok() {
                println!("{file}: {:?}", run(&image, &mut instance));
                calls += 1;
            }
        }
    }
    println!("{modules} modules, {calls} calls: nothing found; {left} modules left out");
}

fn run(image: &Image<'_>, instance: &mut Instance) -> Outcome {
    let mut outcome = Outcome::Done;
    for (turn, slice) in SLICES.into_iter().enumerate() {
        outcome = match turn % 2 {
            0 => instance.run(image, &mut { slice }),
            _ => {
                instance.run_behind(image, &mut { slice }, &mut Open).expect("nothing confines it")
            }
        };
        if outcome != Outcome::OutOfFuel {
            break;
        }
        let mut bytes = Vec::new();
        instance.suspend(image, &mut bytes);
        *instance = Instance::resume(image, &bytes, &CONFIG).expect("own bytes");
    }
    let _ = (instance.backtrace(image), instance.results(image).count());
    outcome
}

/// A wall with nothing to stop the interpreter, which reaches the memory of a stay by its addresses alone.
struct Open;

impl Wall for Open {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        let Entry::Interpreter(enter) = stay.enter else { panic!("nothing is compiled") };
        // SAFETY: the words are the interpreter's, and the stay borrows what they name.
        unsafe { enter(stay.expose()) };
        Ok(())
    }
}
