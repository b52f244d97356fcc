use super::*;
use alloc::string::String;
use alloc::vec;

/// A message of this version.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Status {
    uptime_ms: u64,
    #[serde(with = "growing::list")]
    machines: Vec<Machine>,
    #[serde(with = "growing::option")]
    heap: Option<Machine>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Machine {
    id: u32,
}

/// The same in the next version.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NextStatus {
    uptime_ms: u64,
    #[serde(with = "growing::list")]
    machines: Vec<NextMachine>,
    #[serde(with = "growing::option")]
    heap: Option<NextMachine>,
    #[serde(default)]
    zone: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NextMachine {
    id: u32,
    #[serde(default)]
    label: String,
}

#[test]
fn newer_message_read_by_an_older_reader_loses_only_what_was_appended() {
    let machine = |id| NextMachine { id, label: "north".into() };
    let newer = NextStatus {
        uptime_ms: 300,
        machines: vec![machine(1), machine(700)],
        heap: Some(machine(5)),
        zone: Some("attic".into()),
    };
    let machine = |id| Machine { id };
    let read =
        Status { uptime_ms: 300, machines: vec![machine(1), machine(700)], heap: Some(machine(5)) };
    assert_eq!(decode::<Status>(&encode(&newer)), Ok(read));
}

#[test]
fn older_message_read_by_a_newer_reader_has_defaults_for_what_was_appended() {
    let older = Status { uptime_ms: 9, machines: vec![Machine { id: 4 }], heap: None };
    let machine = NextMachine { id: 4, label: String::new() };
    let read = NextStatus { uptime_ms: 9, machines: vec![machine], heap: None, zone: None };
    assert_eq!(decode::<NextStatus>(&encode(&older)), Ok(read));
}

#[test]
fn message_cut_within_the_fields_of_its_version_is_malformed() {
    let whole = encode(&Status { uptime_ms: 300, machines: vec![Machine { id: 1 }], heap: None });
    for length in 0..whole.len() {
        assert_eq!(decode::<Status>(&whole[..length]), Err(Malformed), "{length} bytes");
    }
}

#[test]
fn optional_answer_grows_like_the_message_in_it() {
    let older = encode(&Some(Machine { id: 4 }));
    let newer = Some(NextMachine { id: 4, label: String::new() });
    assert_eq!(decode::<Option<NextMachine>>(&older), Ok(newer));
}

#[test]
fn list_items_grow_one_by_one() {
    let newer = List(vec![
        NextMachine { id: 1, label: "a".into() },
        NextMachine { id: 2, label: "bc".into() },
    ]);
    let read = List(vec![Machine { id: 1 }, Machine { id: 2 }]);
    assert_eq!(decode::<List<Machine>>(&encode(&newer)), Ok(read));
}
