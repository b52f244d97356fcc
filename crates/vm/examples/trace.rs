//! What a program executes: instructions and pairs of them by how often they run, for choosing
//! superinstructions (`docs/vm.md`). `cargo run --release -p tenure-vm --example trace -- guest.wasm run 2`

use std::collections::HashMap;

use tenure_vm::{
    FunctionIndex, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value,
    disassemble, translate,
};

const STEPS_MAX: u64 = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, name, rest @ ..] = &arguments[..] else {
        eprintln!("usage: trace FILE.wasm FUNCTION [I32...]");
        std::process::exit(2);
    };
    let wasm = std::fs::read(file).expect("the file can be read");
    let mut bytes = Vec::new();
    translate(&wasm, &NoHostFunctions, &Limits::widest(), &mut bytes).expect("the module is valid");
    let image = Image::parse(&bytes).expect("just made");
    let config = InstanceConfig { stack_bytes: 1 << 16, memory_bytes_max: 1 << 24 };
    let mut instance = Instance::new(&image, &config).expect("the instance starts");
    let function = image.function(name).expect("the function is exported").index;
    let values: Vec<Value> =
        rest.iter().map(|text| Value::I32(text.parse().expect("an integer"))).collect();
    instance.prepare(&image, function, &values).expect("the arguments fit");

    let mut singles: HashMap<String, u64> = HashMap::new();
    let mut pairs: HashMap<String, u64> = HashMap::new();
    let mut before = String::new();
    let mut steps = 0;
    while steps < STEPS_MAX {
        // One unit of fuel is one instruction, and a debt that further units pay off.
        let frame = instance.backtrace(&image).first().copied().expect("a call is under way");
        let code = image.code(FunctionIndex(frame.function)).expect("it has code");
        let (text, _) = disassemble(code, frame.offset as usize).expect("it is whole");
        let mnemonic = text.split(' ').next().unwrap_or_default().to_owned();
        *singles.entry(mnemonic.clone()).or_default() += 1;
        *pairs.entry(format!("{before} {mnemonic}")).or_default() += 1;
        before = mnemonic;
        steps += 1;
        let place = (instance.backtrace(&image).len(), frame);
        let mut done = false;
        while !done && instance.backtrace(&image).first().is_some_and(|now| *now == place.1) {
            done = !matches!(instance.run(&image, &mut 1), Outcome::OutOfFuel);
        }
        if done {
            break;
        }
    }
    println!("{steps} instructions");
    for (what, counts) in [("single", singles), ("pair", pairs)] {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (name, count) in counts.iter().take(25) {
            println!("{what} {:5.1} % {name}", *count as f64 * 100.0 / steps as f64);
        }
    }
}
