//! The page of the owner's protocol.

use std::fmt::Write as _;

use tenure_wire::control::{
    Access, DESCRIPTIONS, FunctionDescription, FunctionInfo, OLDEST, TABLE, VERSION,
};

use super::Description;

pub(super) fn page(_: &Description) -> String {
    let mut text = format!(
        "<!-- Generated from crates/wire/src/control.rs by `cargo xtask generate`. -->\n\
         # The owner's protocol\n\n\
         An owner asks a device by calls to the device's own machine, in a session with the owner's key. \
         This\nis version {VERSION}; a device of this version speaks versions {OLDEST} to {VERSION}.\n\n\
         ## Versions\n\n\
         `hello` comes first: each side sends the versions that it speaks. Without a common version both \
         stop\nand name the two versions. `tenure` doesn't call a function that the device's version \
         lacks.\n\n\
         A request or an answer is a struct in postcard's encoding. A later version appends fields and \
         changes\nnone: an older reader ignores what follows the fields that it knows, and a newer reader \
         takes the\ndefault of a field that an older writer didn't send. Structs in lists and options are \
         preceded by their\nlength, and grow in the same way. A request `raw` is a byte string that its \
         signer encoded.\n\n\
         An answer is 0 and the result, or 1, a code and a text. Unknown codes are kept and shown with their \
         text.\n\n\
         ## Access\n\n\
         | access | caller |\n|---|---|\n\
         | owner | the session has the owner's key |\n\
         | tenant | any session; the request is signed by a tenant, and the device checks that |\n\
         | anybody | any session |\n\n\
         A stranger who calls a function of the owner's, or one that doesn't exist, learns only that the \
         device\nbelongs to another owner. A leaf serves `hello`, `status`, `list`, `tree`, `enrol`, `join`, \
         `time`, `mesh` and\n`record`.\n\n\
         ## Functions\n\n\
         | function | request | answer | access | since | meaning |\n|---|---|---|---|--:|---|\n"
    );
    for (function, description) in TABLE.iter().zip(DESCRIPTIONS) {
        text += &row(function, description);
    }
    text + "\nThe types are structs of `tenure_wire::control`.\n"
}

fn row(function: &FunctionInfo, description: &FunctionDescription) -> String {
    let access = match function.access {
        Access::Owner => "owner",
        Access::Tenant => "tenant",
        Access::Anybody => "anybody",
    };
    let documentation: Vec<&str> =
        description.documentation.iter().map(|line| line.trim()).collect();
    let mut row = String::new();
    let _ = writeln!(
        row,
        "| `{}` | {} | {} | {access} | {} | {} |",
        function.name,
        type_name(description.request),
        type_name(description.response),
        function.since,
        documentation.join(" "),
    );
    row
}

/// A type as the page shows it: without spaces of the macro's, lifetimes, or empty parentheses.
fn type_name(name: &str) -> String {
    let name = name.replace("<'_>", "").replace(' ', "");
    if name.is_empty() || name == "()" { "–".to_string() } else { format!("`{name}`") }
}
