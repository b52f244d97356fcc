//! Mutated host calls: a guest that makes whatever calls a script tells it to, and scripts.
//!
//! The guest knows nothing of what the calls mean. A script is the parameter of its `perform`: how many
//! calls, then each as its place in the host-call table and the raw words of its parameters, then
//! texts for them to point at. So who draws scripts decides every bit of every argument, and a call
//! that is added to the table is made from then on.

use std::fmt::Write as _;

use tenure_hal::simulated::Random;
use tenure_wire::host_call::{MODULE, ParameterKind, ResultKind, TABLE, WasmType};
use tenure_wire::limits::PARAMETER_BYTES_MAX;

/// The guest's memory, as its budget allows it.
pub(crate) const MEMORY_BYTES: u32 = 16 * 1024;
/// Where the guest puts a script.
const SCRIPT: u32 = 1024;
/// The bytes before the first call of a script.
const HEADER_BYTES: u32 = 4;
/// A call in a script: its place in the table, and the most words that any has.
const CALL_BYTES: u32 = 4 + 4 * WORDS_MAX as u32;
const WORDS_MAX: usize = 12;
/// The most calls of a script, so that its texts find room behind them.
pub(crate) const CALLS_MAX: u32 = 96;
/// From where on mutated calls have their results written, as a rule.
const RESULTS: u32 = 9 * 1024;
/// How many calls of a script the guest makes when it gets one by itself: from its tree at its start,
/// as an event, as the result of a call that it queued.
const CALLS_BY_ITSELF: u32 = 12;

/// The guest in WebAssembly's text form: `perform` makes the calls of a script, `dump` replies with its
/// memory from an offset on, `report` with how often it made each call, and how often well.
pub(crate) fn guest() -> String {
    let mut text = String::from("(module\n");
    for call in TABLE {
        let parameters: String = call.wasm_parameters().map(|_| " i32").collect();
        assert!(call.wasm_parameters().all(|one| one == WasmType::I32));
        let result = match call.result {
            ResultKind::Nothing => "",
            ResultKind::Status => "(result i32)",
            ResultKind::Time => "(result i64)",
        };
        let name = call.name;
        writeln!(
            text,
            r#"(import "{MODULE}" "{name}" (func ${name} (param{parameters}) {result}))"#
        )
        .unwrap();
    }
    for place in 0..TABLE.len() {
        writeln!(
            text,
            "(global $made{place} (mut i32) (i32.const 0))
             (global $well{place} (mut i32) (i32.const 0))"
        )
        .unwrap();
    }
    text.push_str(r#"(memory (export "memory") 1) (data (i32.const 16) "script")"#);
    text.push_str(&one_call());
    write!(
        text,
        r#"
  (func $run (param $count i32) (local $at i32)
    (local.set $at (i32.const {first}))
    (block $end (loop $next
      (br_if $end (i32.eqz (local.get $count)))
      (call $one (local.get $at))
      (local.set $at (i32.add (local.get $at) (i32.const {CALL_BYTES})))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next))))
  (func $at_most (param $count i32) (param $limit i32) (result i32)
    (select (local.get $count) (local.get $limit)
      (i32.lt_u (local.get $count) (local.get $limit))))
  (func (export "perform")
    (drop (call $parameter_read (i32.const 0) (i32.const {SCRIPT}) (i32.const 8192)))
    (call $run (call $at_most (i32.load (i32.const {SCRIPT})) (i32.const {CALLS_MAX}))))
  (func (export "by_itself")
    (drop (call $parameter_read (i32.const 0) (i32.const {SCRIPT}) (i32.const 8192)))
    (call $run (i32.const {CALLS_BY_ITSELF})))
  (func (export "entry")
    (if (i32.gt_s (call $tree_get (i32.const 16) (i32.const 6) (i32.const {SCRIPT})
          (i32.const 8192)) (i32.const 0))
      (then (call $run (i32.const {CALLS_BY_ITSELF})))))
  (func (export "dump")
    (drop (call $parameter_read (i32.const 0) (i32.const 32) (i32.const 4)))
    (drop (call $reply (i32.load (i32.const 32)) (i32.const 8192))))
  (func (export "report")"#,
        first = SCRIPT + HEADER_BYTES,
    )
    .unwrap();
    for place in 0..TABLE.len() {
        let at = RESULTS as usize + 8 * place;
        write!(
            text,
            "(i32.store (i32.const {at}) (global.get $made{place}))
             (i32.store offset=4 (i32.const {at}) (global.get $well{place}))"
        )
        .unwrap();
    }
    let length = 8 * TABLE.len();
    write!(text, "(drop (call $reply (i32.const {RESULTS}) (i32.const {length})))))").unwrap();
    text
}

/// The function that makes the call of a script at an address, and counts it.
fn one_call() -> String {
    let mut text = String::from("(func $one (param $at i32) (local $status i32)\n");
    let last = TABLE.len() - 1;
    text.extend((0..TABLE.len()).rev().map(|place| format!("(block $call{place} ")));
    text.push_str("(br_table");
    text.extend((0..TABLE.len()).map(|place| format!(" $call{place}")));
    write!(text, " $call{last} (i32.load (local.get $at)))").unwrap();
    for (place, call) in TABLE.iter().enumerate() {
        let words = call.wasm_parameters().enumerate();
        let words: String = words
            .map(|(word, _)| format!(" (i32.load offset={} (local.get $at))", 4 + 4 * word))
            .collect();
        let made = format!("(call ${}{words})", call.name);
        let status = match call.result {
            ResultKind::Nothing => format!("{made} (local.set $status (i32.const 0))"),
            ResultKind::Status => format!("(local.set $status {made})"),
            ResultKind::Time => format!("(local.set $status (i32.wrap_i64 {made}))"),
        };
        write!(
            text,
            ") (global.set $made{place} (i32.add (global.get $made{place}) (i32.const 1)))
             {status}
             (global.set $well{place} (i32.add (global.get $well{place})
               (i32.ge_s (local.get $status) (i32.const 0))))
             (return)\n"
        )
        .unwrap();
    }
    text.push(')');
    text
}

/// Where scripts come from: given bytes, and a generator seeded with them once they are used up.
pub(crate) struct Draw<'a> {
    given: &'a [u8],
    random: Random,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(given: &'a [u8], seed: u64) -> Self {
        Self { given, random: Random::new(seed) }
    }

    fn next(&mut self) -> u64 {
        if let Some((bytes, rest)) = self.given.split_first_chunk() {
            self.given = rest;
            return u32::from_le_bytes(*bytes).into();
        }
        self.random.number()
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound.max(1))) as u32
    }

    pub(crate) fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
}

/// How far calls go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// No pointer leaves the memory, so that all calls of a script are made.
    Within,
    /// Some do, and a few calls end the machine.
    Beyond,
}

/// The kinds of [`Texts`].
const KINDS: usize = 6;

/// The targets of calls, each as the parameters whose names it goes by are made of.
pub(crate) struct Texts<'a> {
    pub(crate) targets: Vec<&'a str>,
    pub(crate) functions: &'a [&'a str],
    pub(crate) paths: &'a [&'a str],
    pub(crate) topics: &'a [&'a str],
    pub(crate) secrets: &'a [&'a str],
    pub(crate) schedules: &'a [&'a str],
}

impl<'a> Texts<'a> {
    fn all(&self) -> [&[&'a str]; KINDS] {
        [&self.targets, self.functions, self.paths, self.topics, self.secrets, self.schedules]
    }

    /// Which of them a parameter is, if it is what it should be.
    fn fitting(parameter: &str) -> usize {
        match parameter {
            "target" => 0,
            "function" | "on_success" | "on_failure" | "handler" => 1,
            "topic" => 3,
            "name" => 4,
            "schedule" => 5,
            _ => 2,
        }
    }
}

/// A script of up to [`CALLS_MAX`] calls that point at `texts`, most of them.
pub(crate) fn script(draw: &mut Draw<'_>, texts: &Texts<'_>, manner: Manner) -> Vec<u8> {
    let count = 1 + draw.below(CALLS_MAX);
    let mut at = SCRIPT + HEADER_BYTES + count * CALL_BYTES;
    let mut places: [Vec<(u32, u32)>; KINDS] = Default::default();
    for (places, texts) in places.iter_mut().zip(texts.all()) {
        for text in texts {
            places.push((at, text.len() as u32));
            at += text.len() as u32;
        }
    }
    let mut bytes = count.to_le_bytes().to_vec();
    let events = if count > 2 && draw.one_in(2) { events_for_itself(places[3][0]) } else { vec![] };
    bytes.extend(&events);
    let answer =
        if count > 4 && draw.one_in(2) { answer_for_itself(texts, &places) } else { vec![] };
    for _ in (events.len() + answer.len()) as u32 / CALL_BYTES..count {
        let mut place = draw.below(TABLE.len() as u32);
        // It ends what it is part of, and so the rest of the script.
        if TABLE[place as usize].name == "abort" && (manner == Manner::Within || !draw.one_in(16)) {
            place = 0;
        }
        let mut words = Vec::new();
        for parameter in TABLE[place as usize].parameters {
            match parameter.kind {
                ParameterKind::Word if parameter.name.ends_with("_ms") => words.push(time(draw)),
                ParameterKind::Word => words.push(word(draw, parameter.name)),
                ParameterKind::Text => {
                    let kind = if draw.one_in(8) {
                        draw.below(places.len() as u32) as usize
                    } else {
                        Texts::fitting(parameter.name)
                    };
                    words.extend(text(draw, &places[kind], manner));
                }
                ParameterKind::Bytes | ParameterKind::Optional => words.extend(range(draw, manner)),
                ParameterKind::Buffer => words.extend(room(draw, manner)),
            }
        }
        bytes.extend(encoded(place, words));
    }
    bytes.extend(&answer);
    bytes.extend(texts.all().concat().iter().flat_map(|text| text.bytes()));
    assert!(bytes.len() <= PARAMETER_BYTES_MAX);
    bytes
}

/// Calls by which the guest has an event of its own to take, which chance alone rarely brings about.
fn events_for_itself((topic, length): (u32, u32)) -> Vec<u8> {
    let place = |name| TABLE.iter().position(|call| call.name == name).unwrap() as u32;
    let subscribe = encoded(place("subscribe"), vec![topic, length, 0, 4, 0, 0]);
    [subscribe, encoded(place("publish"), vec![topic, length, RESULTS, 40])].concat()
}

/// Calls by which the guest has somebody's answer and keeps it to the end of its script.
fn answer_for_itself(texts: &Texts<'_>, places: &[Vec<(u32, u32)>; KINDS]) -> Vec<u8> {
    let call = |name| TABLE.iter().position(|call| call.name == name).unwrap() as u32;
    let find = |kind: usize, wanted| {
        let found = texts.all()[kind].iter().position(|text| *text == wanted);
        found.map(|at| places[kind][at])
    };
    let (Some(target), Some(function)) = (find(0, "friend"), find(1, "echo")) else {
        return Vec::new();
    };
    let words = vec![target.0, target.1, function.0, function.1, RESULTS, 40, 200];
    let read = encoded(call("result_read"), vec![0, RESULTS, 2_000]);
    [encoded(call("call"), words), read].concat()
}

/// A call as it stands in a script.
fn encoded(place: u32, mut words: Vec<u32>) -> Vec<u8> {
    words.resize(WORDS_MAX, 0);
    [place].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect()
}

/// Half the time what may be meant, so that calls get somewhere.
fn word(draw: &mut Draw<'_>, parameter: &str) -> u32 {
    match (draw.below(4), parameter) {
        (0 | 1, "kind" | "policy" | "offset") => draw.below(3),
        (0 | 1, _) => 1 + draw.below(8),
        (2, _) => {
            draw.of(&[0, 31, 32, 33, 255, 256, 2048, 8191, 8192, 1 << 31, u32::MAX - 1, u32::MAX])
        }
        _ => draw.next() as u32,
    }
}

/// A time to wait, nearly always a short one.
fn time(draw: &mut Draw<'_>) -> u32 {
    if draw.one_in(400) { word(draw, "") } else { draw.of(&[1, 1, 2, 5, 20]) }
}

fn text(draw: &mut Draw<'_>, texts: &[(u32, u32)], manner: Manner) -> [u32; 2] {
    let (at, length) = draw.of(texts);
    match draw.below(16) {
        0 => range(draw, manner),
        1 => [at, length.saturating_sub(1 + draw.below(4))],
        2 => [at, length + 1 + draw.below(8)],
        3 => [at, 0],
        _ => [at, length],
    }
}

/// A pointer and a length.
fn range(draw: &mut Draw<'_>, manner: Manner) -> [u32; 2] {
    if manner == Manner::Beyond && draw.one_in(24) {
        let pointer = draw.of(&[MEMORY_BYTES - 1, MEMORY_BYTES, 65_535, 65_536, 1 << 31, u32::MAX]);
        let length = draw.of(&[0, 1, 2, 32, 8192, 65_536, i32::MAX as u32, 1 << 31, u32::MAX]);
        return [pointer, length];
    }
    let length = length(draw);
    let last = MEMORY_BYTES - length;
    // Right up to the end, from the very beginning, or anywhere.
    let pointer = match draw.below(8) {
        0 => last,
        1 => 0,
        _ => draw.below(last + 1),
    };
    [pointer, length]
}

/// A pointer and a capacity: as a rule, such that what is written spares the script.
fn room(draw: &mut Draw<'_>, manner: Manner) -> [u32; 2] {
    if manner == Manner::Beyond && draw.one_in(8) {
        return range(draw, manner);
    }
    let capacity = length(draw);
    let last = MEMORY_BYTES - capacity;
    [if draw.one_in(8) { last } else { last.min(RESULTS + draw.below(64)) }, capacity]
}

fn length(draw: &mut Draw<'_>) -> u32 {
    match draw.below(3) {
        0 => draw.below(80),
        1 => draw.of(&[0, 1, 31, 32, 33, 64, 255, 256, 257, 1024, 2047, 2048, 2049, 8191, 8192]),
        _ => draw.below(MEMORY_BYTES / 2),
    }
}
