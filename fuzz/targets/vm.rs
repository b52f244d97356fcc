//! Modules from anybody: refused, or translated to an image that parses and runs within its fuel;
//! suspended and resumed at every slice, it goes the same way.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_vm::{
    Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value, translate,
};

const FUEL: u64 = 20_000;
/// Odd, so that slices end in the middle of things.
const SLICE: u64 = 997;

fuzz_target!(|wasm: &[u8]| {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let mut bytes = Vec::new();
    if translate(wasm, &NoHostFunctions, &limits, &mut bytes).is_err() {
        return;
    }
    let image = Image::parse(&bytes).expect("what was translated is an image");
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 1 << 20 };
    let (Ok(mut whole), Ok(mut sliced)) =
        (Instance::new(&image, &config), Instance::new(&image, &config))
    else {
        return;
    };
    let _ = whole.run(&image, &mut FUEL.clone());
    run_in_slices(&image, &config, &mut sliced);
    for export in image.exports().filter_map(|export| image.function(export.name)) {
        let arguments: Vec<Value> = export.signature.params().map(Value::zero).collect();
        if whole.prepare(&image, export.index, &arguments).is_err()
            || sliced.prepare(&image, export.index, &arguments).is_err()
        {
            return;
        }
        let at_once = whole.run(&image, &mut FUEL.clone());
        let bit_by_bit = run_in_slices(&image, &config, &mut sliced);
        if at_once == Outcome::OutOfFuel || bit_by_bit == Outcome::OutOfFuel {
            return;
        }
        assert_eq!(at_once, bit_by_bit);
        assert_eq!(whole.memory(), sliced.memory());
    }
});

fn run_in_slices(image: &Image<'_>, config: &InstanceConfig, instance: &mut Instance) -> Outcome {
    let mut outcome = Outcome::OutOfFuel;
    for _ in 0..FUEL / SLICE {
        outcome = instance.run(image, &mut SLICE.clone());
        if outcome != Outcome::OutOfFuel {
            break;
        }
        let mut bytes = Vec::new();
        instance.suspend(image, &mut bytes);
        *instance = Instance::resume(image, &bytes, config).expect("what was written down");
    }
    outcome
}
