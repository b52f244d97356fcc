//! A program's journey between machines: on each leg it is resumed, runs for some fuel, and is suspended.
//!
//! Runs on this machine and, in `tests/device`, on bare ones.

use alloc::vec::Vec;

use tenure_vm::{
    FunctionType, HostFunctions, Image, Instance, InstanceConfig, Limits, Outcome, Value, translate,
};

struct Host;

impl HostFunctions for Host {
    fn resolve(&self, module: &str, name: &str, _: &FunctionType<'_>) -> Option<u16> {
        (module == "host" && name == "twice").then_some(7)
    }
}

const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 8192, memory_bytes_max: 1 << 17 };

/// Executes legs: module, suspended instance (empty: start), fuel. Of each comes whether the call is
/// over, the suspended instance, and the image.
pub(crate) fn legs(mut input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    while !input.is_empty() {
        let (wasm, state) = (take(&mut input), take(&mut input));
        let fuel = u64::from_le_bytes(take(&mut input).try_into().expect("eight bytes"));
        let (over, state, image) = leg(wasm, state, fuel);
        put(&mut output, &[over as u8]);
        put(&mut output, &state);
        put(&mut output, &image);
    }
    output
}

fn leg(wasm: &[u8], state: &[u8], mut fuel: u64) -> (bool, Vec<u8>, Vec<u8>) {
    let mut image = Vec::new();
    translate(wasm, &Host, &Limits::default(), &mut image).expect("a good module");
    let view = Image::parse(&image).expect("just made");
    let mut instance = if state.is_empty() {
        let mut instance = Instance::new_lazy(&view, &CONFIG).expect("small enough");
        let function = view.function("run").expect("exported").index;
        instance.prepare(&view, function, &[]).expect("idle");
        instance
    } else {
        Instance::resume(&view, state, &CONFIG).expect("suspended by one of us")
    };
    // A call of the host is answered on the next leg.
    if let Some(&argument) = instance.host_arguments().first() {
        instance.finish_host_call(&[Value::I32(argument as i32 * 2)]).expect("waiting");
    }
    let outcome = instance.run(&view, &mut fuel);
    let mut written = Vec::new();
    instance.suspend(&view, &mut written);
    (matches!(outcome, Outcome::Done | Outcome::Trap(_)), written, image)
}

/// The next part of a row of parts, each with its length u32 before it.
pub(crate) fn take<'b>(input: &mut &'b [u8]) -> &'b [u8] {
    let (length, rest) = input.split_first_chunk().expect("a length");
    let (part, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
    *input = rest;
    part
}

/// Appends a part.
pub(crate) fn put(output: &mut Vec<u8>, part: &[u8]) {
    output.extend_from_slice(&(part.len() as u32).to_le_bytes());
    output.extend_from_slice(part);
}
