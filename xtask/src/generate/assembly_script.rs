//! The AssemblyScript module: raw imports and error numbers.

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, MODULE, Parameter, ParameterKind, ResultKind};

use super::{Description, NOTICE, sentence};

pub(super) fn module(description: &Description) -> String {
    let mut text = format!(
        "// {NOTICE}\n// The raw host calls; tenure.ts is what programs use.\n\n\
         /** Why a host call failed: a negative result. */\nexport namespace HostError {{\n"
    );
    for (error, name) in description.errors {
        let (words, code) = (sentence(error), error.code());
        let _ = writeln!(text, "  /** {words} */\n  export const {name}: i32 = {code};");
    }
    text += "}\n\n/** An error in a few words. */\nexport function errorText(code: i32): string {\n  \
             switch (code) {\n";
    for (error, _) in description.errors {
        let _ = writeln!(text, "    case {}: return \"{error}\";", error.code());
    }
    text += "    default: return code < 0 ? \"unknown error\" : \"no error\";\n  }\n}\n";
    for call in description.calls {
        text += &declaration(call);
    }
    text
}

fn declaration(call: &HostCallInfo) -> String {
    let mut text = String::from("\n/**\n");
    for line in call.documentation() {
        assert!(!line.contains("*/"), "a comment would end within {}'s: {line}", call.name);
        let _ = writeln!(text, " *{line}");
    }
    let parameters: Vec<String> = call.parameters.iter().flat_map(parameter).collect();
    let result = match call.result {
        ResultKind::Nothing => "void",
        ResultKind::Status => "i32",
        ResultKind::Time => "i64",
    };
    let (name, parameters) = (call.name, parameters.join(", "));
    text + &format!(
        " */\n// @ts-ignore: the compiler's\n@external(\"{MODULE}\", \"{name}\")\n\
         export declare function {name}({parameters}): {result};\n"
    )
}

/// An address has another name than the table gives it: some are words of the language.
fn parameter(parameter: &Parameter) -> Vec<String> {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Word => vec![format!("{name}: u32")],
        ParameterKind::Buffer => {
            vec![format!("{name}_at: usize"), format!("{name}_capacity: u32")]
        }
        ParameterKind::Text | ParameterKind::Bytes | ParameterKind::Optional => {
            vec![format!("{name}_at: usize"), format!("{name}_length: u32")]
        }
    }
}
