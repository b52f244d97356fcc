//! Counts the processor's instructions and the fuel of calls.

use alloc::vec::Vec;

use tenure_vm::{
    Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value, translate,
};

use crate::journey::{put, take};
use crate::machine;

const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 32768, memory_bytes_max: 1 << 20 };

/// Modules and the argument, u32, for what each exports as `run`. Of each come instructions u32 and fuel
/// u64 of that call, after one of `warm` if there is such an export; nothing if a call traps.
pub(crate) fn count(mut input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    while !input.is_empty() {
        let (wasm, argument) = (take(&mut input), take(&mut input));
        let argument = i32::from_le_bytes(argument.try_into().expect("four bytes"));
        let mut counted = Vec::new();
        if let Some((instructions, fuel)) = of(wasm, argument) {
            counted.extend_from_slice(&instructions.to_le_bytes());
            counted.extend_from_slice(&fuel.to_le_bytes());
        }
        put(&mut output, &counted);
    }
    output
}

fn of(wasm: &[u8], argument: i32) -> Option<(u32, u64)> {
    let mut image = Vec::new();
    let limits = Limits::default();
    translate(wasm, &NoHostFunctions, &limits, &mut image).expect("a good module");
    let image = Image::parse(&image).expect("just made");
    let mut instance = Instance::new_lazy(&image, &CONFIG).expect("small enough");
    if let Some(warm) = image.function("warm") {
        instance.prepare(&image, warm.index, &[]).expect("idle");
        instance.run(&image, &mut u64::MAX.clone());
    }
    let run = image.function("run").expect("exported").index;
    instance.prepare(&image, run, &[Value::I32(argument)]).expect("idle");
    let mut fuel = u64::MAX;
    let mut outcome = None;
    let instructions = machine::instructions(|| outcome = Some(instance.run(&image, &mut fuel)));
    (outcome == Some(Outcome::Done)).then_some((instructions, u64::MAX - fuel))
}
