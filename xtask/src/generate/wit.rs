//! The WIT package: host calls as functions of the component model, with its texts, lists and results.
//!
//! A buffer that a call fills becomes its capacity on the way in and a list on the way out. `tenure build` lowers a
//! component's imports of this package to the host calls by the same rules (`crates/cli/src/make/wasi/host_calls.rs`).

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, Parameter, ParameterKind, ResultKind, WIT};

use super::{Description, NOTICE, sentence};

/// The words that WIT reserves (its specification, "Keywords"): as names they begin with a percent sign.
const KEYWORDS: [&str; 40] = [
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "use",
    "with",
    "world",
];

pub(super) fn package(description: &Description) -> String {
    let mut text = format!(
        "// {NOTICE}\n\n\
         /// What a machine may ask of its device, for programs that are made as components.\n\
         package {}@{};\n\n\
         /// The host calls. In the texts below, names have underscores where WIT has hyphens.\n\
         interface {} {{\n  /// Why a host call failed.\n  enum error {{\n",
        WIT.package, WIT.version, WIT.interface
    );
    for (place, (error, name)) in description.errors.iter().enumerate() {
        assert_eq!(error.code(), -1 - place as i32, "an error's number is its place in the enum");
        let _ = writeln!(text, "    /// {}\n    {},", sentence(error), kebab(name));
    }
    text += "  }\n\n  /// What a call wrote.\n  record filled {\n    \
             /// The bytes, as many as there was room for.\n    bytes: list<u8>,\n    \
             /// The number that the call returns: most calls' is the length of all that there is, which may be more.\n    \
             status: u32,\n  }\n";
    for call in description.calls {
        text += &function(call);
    }
    let interface = WIT.interface;
    text + &format!(
        "}}\n\n/// A machine's surroundings: include it in a program's own world.\nworld imports {{\n  import {interface};\n}}\n"
    )
}

fn function(call: &HostCallInfo) -> String {
    let mut text = String::from("\n");
    for line in call.documentation() {
        let _ = writeln!(text, "  ///{line}");
    }
    let parameters: Vec<String> = call.parameters.iter().map(parameter).collect();
    let fills = call.parameters.iter().any(|it| it.kind == ParameterKind::Buffer);
    let result = match call.result {
        ResultKind::Nothing => "",
        ResultKind::Status if fills => " -> result<filled, error>",
        ResultKind::Status => " -> result<u32, error>",
        ResultKind::Time => " -> s64",
    };
    text + &format!("  {}: func({}){result};\n", kebab(call.name), parameters.join(", "))
}

fn parameter(parameter: &Parameter) -> String {
    let name = kebab(parameter.name);
    match parameter.kind {
        ParameterKind::Word => format!("{name}: u32"),
        ParameterKind::Text => format!("{name}: string"),
        ParameterKind::Bytes => format!("{name}: list<u8>"),
        ParameterKind::Optional => format!("{name}: option<list<u8>>"),
        ParameterKind::Buffer => {
            let name = name.trim_start_matches('%');
            format!("{name}-capacity: u32")
        }
    }
}

/// `NotFound`, or `tree_set`, as WIT writes it.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (place, character) in name.chars().enumerate() {
        if character == '_' || (place > 0 && character.is_ascii_uppercase()) {
            text.push('-');
        }
        if character != '_' {
            text.push(character.to_ascii_lowercase());
        }
    }
    if KEYWORDS.contains(&text.as_str()) { format!("%{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use tenure_wire::host_call::{HostError, TABLE};
    use wit_parser::Resolve;

    use super::*;

    #[test]
    fn package_is_read_by_wit_parser_and_has_every_host_call() {
        let text = package(&Description { calls: TABLE, errors: HostError::ALL });
        let mut resolve = Resolve::default();
        let package = resolve.push_str("machine.wit", &text).unwrap();
        let package = &resolve.packages[package];
        assert_eq!(package.name.to_string(), format!("{}@{}", WIT.package, WIT.version));
        let interface = &resolve.interfaces[package.interfaces[WIT.interface]];
        let names: Vec<&String> = interface.functions.keys().collect();
        let expected: Vec<String> =
            TABLE.iter().map(|call| kebab(call.name).trim_start_matches('%').to_owned()).collect();
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        for (call, function) in TABLE.iter().zip(interface.functions.values()) {
            assert_eq!(function.params.len(), call.parameters.len(), "{}", call.name);
        }
        assert!(package.worlds.contains_key("imports"));
    }

    #[test]
    fn words_that_wit_reserves_are_escaped() {
        assert_eq!(kebab("from"), "%from");
        assert_eq!(kebab("tree_set"), "tree-set");
        assert_eq!(kebab("NotFound"), "not-found");
    }
}
