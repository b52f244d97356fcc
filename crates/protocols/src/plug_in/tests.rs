//! Registries: what a foreign protocol may be called, and what a name that nothing has is told.

use alloc::string::ToString as _;

use tenure_mesh::{Protocol, ProtocolNumber};

use super::{BadSettings, Entry, PlugIn, Registry, RegistryError, Start};

/// Declares a protocol that does nothing.
macro_rules! idle {
    ($($protocol:ident = $number:literal, $name:literal;)*) => {
        $(
            struct $protocol;
            tenure_mesh::protocol! { $protocol = $number, $name; }
            impl Protocol for $protocol {}
            impl PlugIn for $protocol {
                fn make(_: &Start<'_>) -> Result<Self, BadSettings> {
                    Ok(Self)
                }
            }
        )*
    };
}

idle! {
    Leader = 130, "leader";
    Namesake = 131, "leader";
    Rival = 130, "rival";
    False = 132, "gap";
    Intruder = 16, "intruder";
}

#[test]
fn name_that_nothing_has_is_told_the_names_that_there_are() {
    const FOREIGN: &[Entry] = &[Entry::of::<Leader>()];
    let registry = Registry::new(FOREIGN).expect("its name and number are free");
    assert_eq!(registry.named("leader").expect("it is there").number(), ProtocolNumber(130));
    assert_eq!(registry.numbered(ProtocolNumber(130)).expect("it is there").name(), "leader");
    let error = registry.named("lieder").expect_err("nothing has this name");
    assert_eq!(
        error.to_string(),
        "no protocol has the name `lieder`; there is gap, flow-updating, limosense, push-sum, \
         membership, leader"
    );
}

#[test]
fn names_and_numbers_that_clash_are_refused() {
    const NAMES: &[Entry] = &[Entry::of::<Leader>(), Entry::of::<Namesake>()];
    const NUMBERS: &[Entry] = &[Entry::of::<Leader>(), Entry::of::<Rival>()];
    const OWN_NAME: &[Entry] = &[Entry::of::<False>()];
    const OWN_NUMBER: &[Entry] = &[Entry::of::<Intruder>()];
    let error = |foreign| Registry::new(foreign).expect_err("it clashes");
    assert_eq!(error(NAMES), RegistryError::NameTwice { name: "leader" });
    assert_eq!(error(OWN_NAME), RegistryError::NameTwice { name: "gap" });
    let names = ["leader", "rival"];
    assert_eq!(error(NUMBERS), RegistryError::NumberTwice { number: ProtocolNumber(130), names });
    assert_eq!(
        error(OWN_NUMBER).to_string(),
        "the protocol `intruder` has the number 16; those from 128 on are free"
    );
}
