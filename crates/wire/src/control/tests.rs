use super::*;
use crate::message;
use alloc::format;
use alloc::string::{String, ToString as _};
use core::time::Duration;

/// A device that answers what it is asked for.
#[derive(Default)]
struct Device {
    forced: Vec<String>,
}

impl Service for Device {
    const SERVES: Functions =
        Functions::of(&[Function::hello, Function::unban, Function::secret_list, Function::trash]);

    fn hello(&mut self, _: Hello) -> Answer<Hello> {
        Ok(Hello::own("test"))
    }

    fn unban(&mut self, Unban { machine }: Unban) -> Answer<()> {
        self.forced.push(format!("{machine}"));
        Ok(())
    }

    fn secret_list(&mut self, signed: &[u8]) -> Answer<SecretList> {
        Err(ControlError::Refused(format!("{} bytes", signed.len())))
    }

    fn lease_number(&mut self, _: LeaseNumber) -> Answer<u64> {
        Ok(7)
    }
}

/// The device over a line that loses nothing.
struct Line(Device, Caller);

impl Client for Line {
    type Error = ControlError;

    fn exchange(&mut self, function: Function, request: Vec<u8>) -> Result<Vec<u8>, ControlError> {
        Ok(dispatch(&mut self.0, self.1, function.name(), &request))
    }

    fn refused(&self, _: Function, error: ControlError) -> ControlError {
        error
    }
}

fn machine(name: &str) -> crate::Name {
    name.parse().unwrap()
}

#[test]
fn names_are_distinct_and_each_function_is_documented() {
    for (place, function) in TABLE.iter().enumerate() {
        assert!(
            TABLE[..place].iter().all(|other| other.name != function.name),
            "{}",
            function.name
        );
        assert!(!DESCRIPTIONS[place].documentation.is_empty(), "{}", function.name);
        assert!((1..=VERSION).contains(&function.since), "{}", function.name);
        assert!(function.name.len() <= crate::limits::FUNCTION_BYTES_MAX, "{}", function.name);
    }
}

#[test]
fn request_reaches_the_function_of_its_name() {
    let mut line = Line(Device::default(), Caller::Owner);
    assert_eq!(line.unban(Unban { machine: machine("clock") }), Ok(()));
    assert_eq!(line.0.forced, ["clock"]);
    assert_eq!(line.secret_list(b"abc"), Err(ControlError::Refused("3 bytes".into())));
}

#[test]
fn stranger_who_calls_what_is_the_owners_is_refused_before_the_request_is_read() {
    let mut line = Line(Device::default(), Caller::Stranger);
    assert_eq!(line.unban(Unban { machine: machine("clock") }), Err(ControlError::NotOwner));
    let unread = dispatch(&mut line.0, Caller::Stranger, "unban", &[0xFF; 3]);
    assert_eq!(decode_answer::<()>(&unread), Err(ControlError::NotOwner));
    assert_eq!(line.0.forced, [""; 0]);
    assert_eq!(line.hello(Hello::own("me")), Ok(Hello::own("test")));
    assert!(matches!(line.secret_list(b""), Err(ControlError::Refused(_))));
}

#[test]
fn functions_that_are_not_served_are_unknown_to_the_owner_and_closed_to_strangers() {
    let mut line = Line(Device::default(), Caller::Owner);
    let number = LeaseNumber { machine: machine("clock") };
    assert_eq!(line.lease_number(number.clone()), Err(ControlError::NoSuchFunction));
    assert_eq!(line.trash(()), Err(ControlError::NoSuchFunction));
    line.1 = Caller::Stranger;
    assert_eq!(line.lease_number(number), Err(ControlError::NotOwner));
    let unknown = dispatch(&mut line.0, Caller::Stranger, "fly", &[]);
    assert_eq!(decode_answer::<()>(&unknown), Err(ControlError::NotOwner));
}

#[test]
fn unreadable_request_is_malformed() {
    let answer = dispatch(&mut Device::default(), Caller::Owner, "unban", &[9, b'x']);
    assert_eq!(decode_answer::<()>(&answer), Err(ControlError::Malformed));
}

#[test]
fn error_of_a_later_version_keeps_its_code_and_text() {
    let answer = [1, 200, 4, b'o', b'h', b' ', b'!', 9, 9];
    let later = ControlError::Other { code: 200, text: "oh !".into() };
    assert_eq!(decode_answer::<()>(&answer), Err(later));
    assert_eq!(decode_answer::<()>(&[]), Err(ControlError::Unreadable));
}

#[test]
fn every_error_comes_back_as_it_went() {
    let errors = [
        ControlError::Malformed,
        ControlError::NotOwner,
        ControlError::NoSuchFunction,
        ControlError::NoSuchMachine(machine("clock")),
        ControlError::Transfer,
        ControlError::Refused("why".into()),
        ControlError::Full("what".into()),
        ControlError::Device("how".into()),
        ControlError::Unreadable,
        ControlError::Busy("with whom".into()),
    ];
    for (code, error) in errors.into_iter().enumerate() {
        assert_eq!(usize::from(error.code()), code);
        let bytes = encode_answer::<()>(&Err(error.clone()));
        assert_eq!(decode_answer::<()>(&bytes), Err(error));
    }
}

#[test]
fn device_that_is_busy_says_when_to_ask_again_if_it_knows() {
    let busy = ControlError::busy_for(Duration::from_millis(3900), "too many signatures to verify");
    let text = "the device is busy: too many signatures to verify; try again in 3900 milliseconds";
    assert_eq!(busy.to_string(), text);
    assert_eq!(busy.again_in(), Some(Duration::from_millis(3900)));
    for text in ["another transfer is under way", "x; try again in a milliseconds", ""] {
        assert_eq!(ControlError::Busy(text.into()).again_in(), None, "{text}");
    }
    assert_eq!(ControlError::Full("x; try again in 1 milliseconds".into()).again_in(), None);
}

#[test]
fn versions_are_agreed_on_where_they_overlap() {
    let speaks = |oldest, newest| Hello { oldest, newest, software: String::new() };
    assert_eq!(speaks(1, 3).common(&speaks(2, 5)), Some(3));
    assert_eq!(speaks(4, 6).common(&speaks(1, 3)), None);
    assert_eq!(speaks(1, 3).common(&speaks(4, 6)), None);
}

/// Frozen: the bytes of version 1. A later version appends; it never changes these.
#[test]
fn messages_of_version_1_are_these_bytes() {
    let hello = Hello { oldest: 1, newest: 1, software: "0.1.0".into() };
    let frozen = [1, 1, 5, b'0', b'.', b'1', b'.', b'0'];
    assert_eq!(message::encode(&hello), frozen);
    assert_eq!(message::decode(&frozen), Ok(hello));
    let begin = InstallBegin { bytes: 300 };
    assert_eq!(message::encode(&begin), [0xAC, 2]);
    let chunk = InstallChunk { offset: 1, bytes: &[7, 8] };
    assert_eq!(message::encode(&chunk), [1, 2, 7, 8]);
    let remove = Remove { machine: machine("ab"), for_good: true };
    assert_eq!(message::encode(&remove), [2, b'a', b'b', 1]);
    let line = LogLine {
        unix_s: None,
        boot: 1,
        number: 5,
        at_ms: 6,
        machine: machine("ab"),
        level: "info".into(),
        message: "hi".into(),
    };
    let page = LogPage { lines: [line].into(), next: 6, lost: 0, more: false, boot: 3 };
    let frozen =
        [&[1, 15, 5, 6, 2][..], b"ab", &[4], b"info", &[2], b"hi", &[0, 1, 6, 0, 0, 3]].concat();
    assert_eq!(message::encode(&page), frozen);
    assert_eq!(encode_answer(&Ok(page.clone())), [&[0][..], &frozen].concat());
    assert_eq!(decode_answer(&[&[0][..], &frozen, b"appended"].concat()), Ok(page.clone()));
    // A device of before says neither the time of day nor the boots.
    let before = [&[1, 13, 5, 6, 2][..], b"ab", &[4], b"info", &[2], b"hi", &[6, 0, 0]].concat();
    let mut older = page;
    older.lines[0].boot = 0;
    older.boot = 0;
    assert_eq!(message::decode(&before), Ok(older));
    assert_eq!(encode_answer::<()>(&Err(ControlError::NotOwner)), [1, 1, 0]);
}
