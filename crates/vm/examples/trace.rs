//! A profile of programs: instructions and pairs of them by how often they run, for choosing
//! superinstructions (`docs/vm.md`), and with `sequences` the rows of `build/sequences.txt`.
//!
//! `cargo run --release -p tenure-vm --example trace -- [sequences] GUEST.wasm...`: each guest exports
//! `run`, which takes the number of repetitions. The first guest counts as much as all others together.

use std::collections::BTreeMap;

use tenure_vm::{
    FunctionIndex, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value,
    disassemble, translate,
};

/// Of each guest so much is looked at.
const STEPS_MAX: usize = 300_000;
const REPETITIONS: i32 = 2;

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let sequences = files.first().is_some_and(|first| first == "sequences");
    if sequences {
        files.remove(0);
    }
    if files.is_empty() {
        eprintln!("usage: trace [sequences] GUEST.wasm...");
        std::process::exit(2);
    }
    let others = files.len().saturating_sub(1).max(1) as f64;
    let mut programs = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mnemonics = trace(file);
        let weight = if index == 0 { 1.0 } else { 1.0 / others } / mnemonics.len() as f64;
        programs.push(Program { mnemonics, weight });
    }
    if sequences { print_sequences(&programs) } else { print_counts(&files, &programs) }
}

/// The instructions that a program executed, and the count of each.
struct Program {
    mnemonics: Vec<String>,
    weight: f64,
}

fn trace(file: &str) -> Vec<String> {
    let wasm = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut bytes = Vec::new();
    translate(&wasm, &NoHostFunctions, &Limits::widest(), &mut bytes).expect("the module is valid");
    let image = Image::parse(&bytes).expect("just made");
    let config = InstanceConfig { stack_bytes: 1 << 16, memory_bytes_max: 1 << 24 };
    let mut instance = Instance::new(&image, &config).expect("the instance starts");
    let function = image.function("run").expect("the function is exported").index;
    instance.prepare(&image, function, &[Value::I32(REPETITIONS)]).expect("the arguments fit");
    let mut mnemonics = Vec::new();
    while mnemonics.len() < STEPS_MAX {
        let place = instance.backtrace(&image);
        let frame = place.first().expect("a call is under way");
        let code = image.code(FunctionIndex(frame.function)).expect("it has code");
        let (text, _) = disassemble(code, frame.offset as usize).expect("it is whole");
        mnemonics.push(text.split(' ').next().unwrap_or_default().to_owned());
        // One unit of fuel is one instruction, and a debt that further units pay off.
        loop {
            if instance.run(&image, &mut 1) != Outcome::OutOfFuel {
                return mnemonics;
            }
            let now = instance.backtrace(&image);
            if now.len() != place.len() || now.first() != Some(frame) {
                break;
            }
        }
    }
    mnemonics
}

fn print_counts(files: &[String], programs: &[Program]) {
    for (file, program) in files.iter().zip(programs) {
        println!("{file}: {} instructions", program.mnemonics.len());
        for length in [1, 2] {
            let mut counts = BTreeMap::<&[String], usize>::new();
            program.mnemonics.windows(length).for_each(|row| *counts.entry(row).or_default() += 1);
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            for (row, count) in counts.iter().take(25) {
                let share = *count as f64 * 100.0 / program.mnemonics.len() as f64;
                println!("{share:5.1} % {}", row.join(" "));
            }
        }
    }
}

/// A sequence is worth its code from this share of all instructions on.
const SHARE_MIN: f64 = 0.0005;
const LENGTH_MAX: usize = 8;
/// How many followers a handler looks for at most: behind its own instruction, and further on.
const FOLLOWERS_MAX: [usize; 2] = [3, 2];
/// Instructions with long code or many registers, which are not repeated in other handlers.
const ALONE: [&str; 4] = ["call", "host", "memory.", "return"];

/// The instructions that follow on one, and how often each was reached from there without a jump.
#[derive(Default)]
struct Node<'p> {
    weight: f64,
    followers: BTreeMap<&'p str, Node<'p>>,
}

fn print_sequences(programs: &[Program]) {
    let mut root = Node::default();
    for program in programs {
        for row in program.mnemonics.windows(LENGTH_MAX) {
            root.weight += program.weight;
            root.count(row, program.weight);
        }
    }
    root.prune();
    // Where a sequence was run through, none of those within it begin: count what is left for each.
    for limit in [false, false, false, false, true, true, true] {
        if limit {
            root.followers.values_mut().for_each(|first| first.limit(FOLLOWERS_MAX[0]));
        }
        root.clear();
        let total: f64 = programs.iter().map(|program| root.run(program)).sum();
        root.prune();
        eprintln!("jumps: {:.1} % of what they were", total * 50.0);
    }
    root.followers.iter().for_each(|(first, node)| node.print(first));
}

impl<'p> Node<'p> {
    /// Counts a row, as far as it may be one sequence.
    fn count(&mut self, row: &'p [String], weight: f64) {
        let mut node = self;
        for (index, mnemonic) in row.iter().enumerate() {
            if index > 0 && ALONE.iter().any(|alone| mnemonic.starts_with(alone)) {
                break;
            }
            node = node.followers.entry(mnemonic).or_default();
            node.weight += weight;
        }
    }

    /// Executes a program with what sequences there are; the weight of its jumps.
    fn run(&mut self, program: &'p Program) -> f64 {
        let (mut jumps, mut rest) = (0.0, program.mnemonics.iter().peekable());
        while let Some(first) = rest.next() {
            jumps += program.weight;
            let mut node = self.followers.entry(first).or_default();
            node.weight += program.weight;
            while let Some(next) =
                rest.peek().and_then(|next| node.followers.get_mut(next.as_str()))
            {
                rest.next();
                node = next;
                node.weight += program.weight;
            }
        }
        jumps
    }

    fn clear(&mut self) {
        self.weight = 0.0;
        self.followers.values_mut().for_each(Node::clear);
    }

    fn prune(&mut self) {
        self.followers.retain(|_, follower| follower.weight >= SHARE_MIN);
        self.followers.values_mut().for_each(Node::prune);
    }

    fn limit(&mut self, followers_max: usize) {
        let mut weights: Vec<f64> = self.followers.values().map(|node| node.weight).collect();
        weights.sort_by(|left, right| right.total_cmp(left));
        if let Some(&first_over) = weights.get(followers_max) {
            self.followers.retain(|_, node| node.weight > first_over);
        }
        self.followers.values_mut().for_each(|node| node.limit(FOLLOWERS_MAX[1]));
    }

    /// Prints the longest sequences, the more frequent of two first.
    fn print(&self, path: &str) {
        let mut followers: Vec<_> = self.followers.iter().collect();
        if followers.is_empty() && path.contains(' ') {
            println!("{path}");
        }
        followers.sort_by(|left, right| right.1.weight.total_cmp(&left.1.weight));
        followers.iter().for_each(|(name, node)| node.print(&format!("{path} {name}")));
    }
}
