//! A call takes the same fuel in slices of any sizes, whether it returns or traps, and ends at the same place with the
//! same memory. The modules are wasm-smith's; `TENURE_VM_SEEDS=FROM..TO` tries others.

mod common;
#[allow(dead_code)]
#[path = "differential/compare.rs"]
mod compare;

use common::Random;
use compare::{argument, config};
use tenure_vm::{
    Breach, Entry, ExportKind, Image, Instance, Limits, NoHostFunctions, Outcome, Stay, Value,
    Wall, translate,
};

/// How a call gets its fuel.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Units of a slice: the least and the most.
    slice: (u64, u64),
    /// Whether the instance is written down and resumed between slices.
    suspended: bool,
    /// Whether the interpreter runs behind a wall.
    behind: bool,
}

const fn way(least: u64, most: u64) -> Way {
    Way { slice: (least, most), suspended: false, behind: false }
}

const WHOLE: Way = way(1 << 40, 1 << 40);

const WAYS: [Way; 8] = [
    way(1, 1),
    way(23, 23),
    way(137, 137),
    way(128, 777),
    way(1, 300),
    Way { suspended: true, ..way(1, 300) },
    Way { behind: true, ..way(1, 300) },
    Way { behind: true, ..WHOLE },
];

/// What takes more in all isn't tried in the smallest slices, and isn't written down more often than that.
const SMALL_UNITS: u64 = 50_000;
const SUSPENSIONS_MAX: u32 = 100;

/// Confines nothing.
struct Open;

impl Wall for Open {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        let Entry::Interpreter(enter) = stay.enter else { panic!("nothing is compiled") };
        // SAFETY: the words are the interpreter's, and the stay borrows what they name.
        unsafe { enter(stay.expose()) };
        Ok(())
    }
}

/// What a call leaves.
#[derive(PartialEq)]
struct End {
    /// Of a trap, with its place.
    outcome: Outcome,
    results: Vec<Value>,
    used: u64,
    memory: Vec<u8>,
    globals: Vec<Value>,
}

/// How often calls returned, and trapped, and how often one had ended in debt.
#[derive(Debug, Default)]
struct Tally {
    returned: u32,
    trapped: u32,
    owed: u32,
}

/// Runs what is prepared to its end.
fn finish(
    instance: &mut Instance,
    image: &Image<'_>,
    way: Way,
    random: &mut Random,
    tally: &mut Tally,
) -> End {
    let (mut used, mut suspensions) = (0, 0);
    let (least, most) = way.slice;
    let outcome = loop {
        let slice = least + random.below(most - least + 1);
        let mut fuel = slice;
        let outcome = match way.behind {
            true => instance.run_behind(image, &mut fuel, &mut Open).expect("nothing confines it"),
            false => instance.run(image, &mut fuel),
        };
        used += slice - fuel;
        if outcome != Outcome::OutOfFuel {
            break outcome;
        }
        assert_eq!(fuel, 0, "it stopped with fuel left");
        tally.owed += u32::from(!instance.is_busy());
        if way.suspended && suspensions < SUSPENSIONS_MAX {
            suspensions += 1;
            let mut bytes = Vec::new();
            instance.suspend(image, &mut bytes);
            *instance = Instance::resume(image, &bytes, &config()).expect("own bytes");
        }
    };
    match outcome {
        Outcome::Done => tally.returned += 1,
        _ => tally.trapped += 1,
    }
    End {
        outcome,
        results: instance.results(image).collect(),
        used,
        memory: instance.memory().to_vec(),
        globals: (0..).map_while(|index| instance.global(image, index)).collect(),
    }
}

/// Starts the module and calls its exports one after the other, on one instance.
fn ends(image: &Image<'_>, way: Way, seed: u64, tally: &mut Tally) -> Option<Vec<End>> {
    let mut instance = Instance::new_lazy(image, &config()).ok()?;
    let (mut slices, mut values) = (Random::new(seed), Random::new(!seed));
    let mut ends = Vec::new();
    if instance.is_busy() {
        ends.push(finish(&mut instance, image, way, &mut slices, tally));
    }
    for export in image.exports() {
        let ExportKind::Function(function) = export.kind else { continue };
        let types = image.signature(function).expect("exported");
        let arguments: Vec<_> = types.params().map(|kind| argument(kind, &mut values)).collect();
        instance.prepare(image, function, &arguments).expect("idle");
        ends.push(finish(&mut instance, image, way, &mut slices, tally));
    }
    Some(ends)
}

fn check(name: &str, wasm: &[u8], seed: u64, tally: &mut Tally) {
    let mut bytes = Vec::new();
    translate(wasm, &NoHostFunctions, &Limits::widest(), &mut bytes).expect("valid");
    let image = Image::parse(&bytes).expect("just made");
    let Some(whole) = ends(&image, WHOLE, seed, tally) else { return };
    let units: u64 = whole.iter().map(|end| end.used).sum();
    for way in WAYS {
        if units > SMALL_UNITS && way.slice.0 < 100 {
            continue;
        }
        let sliced = ends(&image, way, seed, tally).expect("it started before");
        assert_eq!(sliced.len(), whole.len());
        for (nth, (end, expected)) in sliced.iter().zip(&whole).enumerate() {
            assert!(
                end == expected,
                "{name}, call {nth}, {way:?}: {:?} for {} units, whole {:?} for {}",
                end.outcome,
                end.used,
                expected.outcome,
                expected.used
            );
        }
    }
}

#[test]
fn random_modules_take_the_same_fuel_in_any_slices_however_their_calls_end() {
    let range = std::env::var("TENURE_VM_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let mut tally = Tally::default();
    for seed in range.unwrap_or(9_000..9_080) {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..2048).map(|_| random.number() as u8).collect();
        let Some(wasm) = compare::module(&bytes, !seed.is_multiple_of(4)) else { continue };
        check(&format!("seed {seed}"), &wasm, seed, &mut tally);
    }
    println!("{tally:?}");
    let Tally { returned, trapped, owed } = tally;
    assert!(returned > 100 && trapped > 100 && owed > 100, "{tally:?}");
}
