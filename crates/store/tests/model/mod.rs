//! A model of the store in the plainest way, a map of all values; and random work for both.

use std::collections::BTreeMap;

use tenure_hal::simulated::Random;
use tenure_hal::{Flash, FlashGeometry};
use tenure_store::{
    BatchError, Change, DeleteError, MountError, MountReport, Seal, SetError, Store, TAG_BYTES,
    TreeId, Unsealable, ValueKind,
};

/// Eight sectors of 1 KiB: small, so that a short run goes round the ring many times.
pub(crate) const SMALL: FlashGeometry =
    FlashGeometry { sector_bytes: 1024, sector_count: 8, program_bytes: 4 };

/// All values of all trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) values: BTreeMap<(u16, String), (ValueKind, Vec<u8>)>,
}

/// One change, with what it needs of its own.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Set { tree: u16, path: String, kind: ValueKind, value: Vec<u8> },
    Delete { tree: u16, path: String },
    Batch(Vec<Step>),
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Full,
    /// The flash failed: a power cut.
    Cut,
}

/// The tree that is sealed in these tests; the others are not.
pub(crate) const SEALED_TREE: TreeId = TreeId(1);

/// No cipher, but like one in all that the store can see: what it makes depends on key, number and
/// place, and nothing else opens it.
pub(crate) struct ToySeal(pub u64);

impl ToySeal {
    fn crypt(&self, number: u64, value: &mut [u8]) {
        let mut stream = Work::new(self.0 ^ number);
        value.iter_mut().for_each(|byte| *byte ^= stream.number() as u8);
    }

    fn tag(&self, number: u64, associated: &[u8], sealed: &[u8]) -> [u8; TAG_BYTES] {
        let mut state = Work::new(self.0 ^ number.rotate_left(32));
        for byte in associated.iter().chain(&[associated.len() as u8]).chain(sealed) {
            state = Work::new(state.number() ^ u64::from(*byte));
        }
        let (one, two) = (state.number(), state.number());
        let mut tag = [0; TAG_BYTES];
        tag[..8].copy_from_slice(&one.to_le_bytes());
        tag[8..].copy_from_slice(&two.to_le_bytes());
        tag
    }
}

impl Seal for ToySeal {
    fn seal(&self, number: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
        self.crypt(number, value);
        self.tag(number, associated, value)
    }

    fn open(
        &self,
        number: u64,
        associated: &[u8],
        value: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), Unsealable> {
        if self.tag(number, associated, value) != *tag {
            return Err(Unsealable);
        }
        self.crypt(number, value);
        Ok(())
    }
}

/// Makes a store with one sealed tree.
#[allow(dead_code, reason = "not every test binary needs all of it")]
pub(crate) fn format<F: Flash>(flash: F) -> Store<F> {
    let mut store = Store::format(flash).unwrap();
    store.seal_tree(SEALED_TREE, Some(Box::new(ToySeal(7))));
    store
}

/// Finds the store that [`format`] made.
#[allow(dead_code, reason = "not every test binary needs all of it")]
pub(crate) fn mount<F: Flash>(flash: F) -> Result<(Store<F>, MountReport), MountError> {
    let (mut store, report) = Store::mount(flash)?;
    store.seal_tree(SEALED_TREE, Some(Box::new(ToySeal(7))));
    Ok((store, report))
}

#[allow(dead_code, reason = "not every test binary needs all of it")]
impl Model {
    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Set { tree, path, kind, value } => {
                self.values.insert((*tree, path.clone()), (*kind, value.clone()));
            }
            Step::Delete { tree, path } => {
                let below = format!("{path}.");
                self.values.retain(|(of, key), _| {
                    *of != *tree || !(path.is_empty() || key == path || key.starts_with(&below))
                });
            }
            Step::Batch(steps) => steps.iter().for_each(|step| self.apply(step)),
        }
    }

    /// Everything a store holds, read by walking its trees. Panics where a value is unreadable.
    pub(crate) fn of<F: Flash>(store: &mut Store<F>) -> Self {
        let mut values = BTreeMap::new();
        for tree in store.trees().collect::<Vec<_>>() {
            let mut at: Option<String> = None;
            while let Some(path) = store.next_path(tree, at.as_deref()).unwrap() {
                let value = store.get(tree, &path).unwrap().expect("a path that was listed");
                values.insert((tree.0, path.clone()), (value.kind, value.bytes));
                at = Some(path);
            }
        }
        Self { values }
    }

    /// The names below a node, found the slow way.
    pub(crate) fn children(&self, tree: u16, node: &str) -> Vec<String> {
        let below = if node.is_empty() { String::new() } else { format!("{node}.") };
        let keys = self.values.keys().filter(|(of, _)| *of == tree);
        let rest = keys.filter_map(|(_, key)| key.strip_prefix(&below));
        let mut names: Vec<String> =
            rest.filter_map(|rest| rest.split('.').next()).map(String::from).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Does the step on a store.
pub(crate) fn perform<F: Flash>(store: &mut Store<F>, step: &Step) -> Outcome {
    match step {
        Step::Set { tree, path, kind, value } => {
            match store.set(TreeId(*tree), path, *kind, value) {
                Ok(()) => Outcome::Done,
                Err(SetError::Full) => Outcome::Full,
                Err(SetError::Flash(_)) => Outcome::Cut,
                Err(error) => panic!("{step:?}: {error}"),
            }
        }
        Step::Delete { tree, path } => match store.delete(TreeId(*tree), path) {
            Ok(_) => Outcome::Done,
            Err(DeleteError::Flash(_)) => Outcome::Cut,
            Err(error) => panic!("{step:?}: {error}"),
        },
        Step::Batch(steps) => {
            let changes: Vec<Change<'_>> = steps.iter().map(change).collect();
            match store.batch(&changes) {
                Ok(()) => Outcome::Done,
                Err(BatchError::Full) => Outcome::Full,
                Err(BatchError::Flash(_)) => Outcome::Cut,
                Err(error) => panic!("{step:?}: {error}"),
            }
        }
    }
}

fn change(step: &Step) -> Change<'_> {
    match step {
        Step::Set { tree, path, kind, value } => {
            Change::Set { tree: TreeId(*tree), path, kind: *kind, value }
        }
        Step::Delete { tree, path } => Change::Delete { tree: TreeId(*tree), path },
        Step::Batch(_) => panic!("batches don't nest"),
    }
}

/// A seeded source of steps.
#[derive(Clone, Debug)]
pub(crate) struct Work(Random);

impl Work {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.number()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Mostly sets, some deletes, a batch now and then.
    pub(crate) fn step(&mut self) -> Step {
        match self.below(12) {
            0 => Step::Batch((0..1 + self.below(6)).map(|_| self.single()).collect()),
            _ => self.single(),
        }
    }

    fn single(&mut self) -> Step {
        let tree = self.below(3) as u16;
        match self.below(8) {
            0 => {
                let depth = if self.below(8) == 0 { 0 } else { 1 + self.below(3) };
                Step::Delete { tree, path: self.path(depth) }
            }
            _ => {
                let depth = 1 + self.below(3);
                let path = self.path(depth);
                let kind = if self.below(2) == 0 { ValueKind::Bytes } else { ValueKind::Text };
                Step::Set { tree, path, kind, value: self.value() }
            }
        }
    }

    fn path(&mut self, depth: u64) -> String {
        let names = ["a", "b", "a-b", "cc", "a_rather_long_name"];
        let segment = |work: &mut Self| names[work.below(names.len() as u64) as usize];
        (0..depth).map(|_| segment(self)).collect::<Vec<_>>().join(".")
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(10) {
            0 => 0,
            1 => self.below(500),
            _ => self.below(40),
        };
        let fill = self.number();
        match fill % 4 {
            0 => vec![0xFF; length as usize],
            _ => (0..length).map(|_| self.number() as u8).collect(),
        }
    }
}
