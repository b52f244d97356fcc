use super::*;
use alloc::string::ToString;

fn check(text: &str, expected: Result<Target, NameError>) {
    assert_eq!(text.parse::<Target>(), expected, "{text:?}");
    if let Ok(target) = expected {
        assert_eq!(target.to_string(), text);
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn targets_in_their_five_forms() {
    check("", Ok(Target::Own));
    check("store", Ok(Target::Local(name("store"))));
    check("store@attic", Ok(Target::Remote { machine: name("store"), device: name("attic") }));
    let id = MachineId(*b"twelve bytes");
    check(&alloc::format!("#{id}"), Ok(Target::Id(id)));
    let key = PublicKey([7; 32]);
    check(&alloc::format!("#{key}"), Ok(Target::Key(key)));
}

#[test]
fn names_that_are_none() {
    check("@", Err(NameError::Empty));
    check("a@", Err(NameError::Empty));
    check("9lives", Err(NameError::FirstCharacter));
    check("no space", Err(NameError::Character { at: 2 }));
    check("a@b@c", Err(NameError::Character { at: 1 }));
    check("#nonsense", Err(NameError::Id));
    check(&"a".repeat(33), Err(NameError::TooLong));
    check("umläut", Err(NameError::Character { at: 3 }));
}

#[test]
fn an_invalid_name_is_not_deserialised() {
    let bytes = postcard::to_allocvec("Not A Name").unwrap();
    assert!(postcard::from_bytes::<Name>(&bytes).is_err());
    let bytes = postcard::to_allocvec(&name("attic")).unwrap();
    assert_eq!(postcard::from_bytes::<Name>(&bytes).unwrap(), name("attic"));
}
