use alloc::string::ToString;
use alloc::vec;
use core::iter::repeat_n;

use tenure_wire::timer::When;

use super::*;

fn manifest() -> Manifest {
    Manifest {
        exports: vec!["entry".into(), "read".into()],
        ..Manifest::new("m".parse().unwrap(), "1.2.3".parse().unwrap())
    }
}

#[test]
fn limits_are_kept() {
    let check = |change: fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        manifest.check()
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert_eq!(
        check(|m| m.description = repeat_n('d', 257).collect()),
        Err(ManifestError::Description)
    );
    assert_eq!(check(|m| m.description = repeat_n('d', 256).collect()), Ok(()));
    assert_eq!(
        check(|m| m.exports = (0..65).map(|n| n.to_string()).collect()),
        Err(ManifestError::Exports)
    );
    assert_eq!(check(|m| m.exports = (0..64).map(|n| n.to_string()).collect()), Ok(()));
    let longest = |m: &mut Manifest| m.exports[1] = repeat_n('e', FUNCTION_BYTES_MAX).collect();
    assert_eq!(check(longest), Ok(()));
    assert_eq!(
        check(|m| m.exports[1] = repeat_n('e', FUNCTION_BYTES_MAX + 1).collect()),
        Err(ManifestError::ExportName { export: 1 })
    );
    for name in ["", "a b", "a\n", "\0"] {
        let mut manifest = manifest();
        manifest.exports[1] = name.into();
        assert_eq!(manifest.check(), Err(ManifestError::ExportName { export: 1 }), "{name:?}");
    }
    assert_eq!(
        check(|m| m.exports[1] = "entry".into()),
        Err(ManifestError::ExportTwice { export: 1 })
    );
    let timer = |function: &str, when| PackageTimer { function: function.into(), when };
    for timers in [
        vec![timer("", When::Every(10))],
        vec![timer("read", When::Every(9))],
        vec![timer("read", When::Every(10)), timer("read", When::Every(20))],
    ] {
        let last = timers.len() - 1;
        let manifest = Manifest { timers, ..manifest() };
        assert_eq!(manifest.check(), Err(ManifestError::Timer { timer: last }));
    }
    let timers = (0..TIMERS_MAX).map(|n| timer(&n.to_string(), When::Every(10))).collect();
    assert_eq!(Manifest { timers, ..manifest() }.check(), Ok(()));
    let timers = (0..=TIMERS_MAX).map(|n| timer(&n.to_string(), When::Every(10))).collect();
    assert_eq!(Manifest { timers, ..manifest() }.check(), Err(ManifestError::Timers));
    assert_eq!(
        check(|m| m.capabilities.secrets = repeat_n("wifi".parse().unwrap(), 2).collect()),
        Err(ManifestError::Capability(Right::Secret))
    );
}

#[test]
fn export_name_that_a_terminal_would_show_as_another_is_refused() {
    for name in
        ["re\u{202E}da", "read\u{200B}", "re\u{AD}ad", "read\u{E0061}", "a\u{2066}b", "\x1b[2J"]
    {
        let mut manifest = manifest();
        manifest.exports[0] = name.into();
        assert_eq!(manifest.check(), Err(ManifestError::ExportName { export: 0 }), "{name:?}");
    }
}

#[test]
fn what_is_refused_is_counted_from_one() {
    for (error, begins) in [
        (ManifestError::ExportName { export: 1 }, "export 2 has no name"),
        (ManifestError::ExportTwice { export: 2 }, "export 3 is there twice"),
        (ManifestError::Timer { timer: 0 }, "timer 1 has no function"),
    ] {
        assert!(error.to_string().starts_with(begins), "{error}");
    }
}

#[test]
fn versions_have_one_text_form_each() {
    for text in ["0.0.0", "1.2.3", "65535.0.10"] {
        assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
    }
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "01.2.3", "+1.2.3", "1.2.65536", "1..2"] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
    assert!("1.10.0".parse::<Version>().unwrap() > "1.9.9".parse().unwrap());
}
