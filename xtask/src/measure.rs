//! `measure`: the shape of the code in numbers, so that anybody can repeat and compare them.
//!
//! It reads text and compiles nothing, and relies on rustfmt's layout: a block ends at the first `}` that
//! stands as far in as the line that it began with.

mod copies;
mod imports;
mod source;
mod types;
mod words;

use std::path::Path;

use anyhow::{Result, bail};

use self::source::Source;
use crate::report::Verdict;
use crate::workspace;

/// Count files, functions, methods of types, import rings, copies and words.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask measure\n  cargo xtask measure crates/node")]
pub(crate) struct Arguments {
    /// Only what lies in this folder.
    folder: Option<String>,
    /// How many of the largest functions and types are named.
    #[arg(long, default_value_t = 8, value_name = "N")]
    top: usize,
}

/// The most modules of a crate that may import one another in a ring.
const RING_MAX: usize = 2;
/// The most methods of a type. 52 since the kernel lends itself to a profiler, beside engine, wall and compiled code, and tells a bridge
/// who publishes.
const METHODS_MAX: usize = 52;

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let mut sources = source::all(root)?;
    if let Some(folder) = &arguments.folder {
        sources.retain(|source| source.path.starts_with(folder));
        if sources.is_empty() {
            bail!("no Rust source lies in {folder}");
        }
    }
    let (tests, product): (Vec<_>, Vec<_>) = sources.into_iter().partition(|it| it.is_test);
    let lines = |sources: &[Source]| sources.iter().map(|it| it.lines.len()).sum::<usize>();
    println!("{:<28} {} in {} files", "lines of the product", lines(&product), product.len());
    println!("{:<28} {} in {} files", "lines of tests, apart", lines(&tests), tests.len());
    show_sizes("lines a file", product.iter().map(|it| it.lines.len()).collect(), &[500, 800]);
    let functions: Vec<_> = product.iter().flat_map(Source::functions).collect();
    show_sizes("lines a function", functions.iter().map(|it| it.lines).collect(), &[70]);
    let named = functions.iter().map(|it| (it.lines, it.name.clone())).collect();
    show_largest("longest functions, lines", named, arguments.top);
    let methods = types::methods(&product);
    let named = methods.into_iter().map(|(name, count)| (count, name)).collect();
    show_largest("largest types, methods", named, arguments.top);
    println!("import rings, modules");
    for (package, rings) in imports::rings(&imports::graphs(&product)) {
        for ring in rings {
            println!("  {:>5}  {package}: {}", ring.len(), ring.join(" "));
        }
    }
    println!("{:<28} {}", "lines of copies", copies::lines(&product));
    let words = words::count(root, &product)?;
    println!("{:<28} {}", "words of docs", words.docs);
    println!("{:<28} {}", "words of comments", words.comments);
    Ok(())
}

/// No crate has a ring of imports of more modules than the bound allows, and rooms import those below them
/// alone.
pub(crate) fn check_rings(root: &Path) -> Result<Verdict> {
    let graphs = imports::graphs(&product(root)?);
    let mut faults = Vec::new();
    for (package, rings) in imports::rings(&graphs) {
        let over = rings.iter().filter(|ring| ring.len() > RING_MAX);
        faults.extend(over.map(|ring| {
            format!("{package}: {} modules, at most {RING_MAX}: {}", ring.len(), ring.join(" "))
        }));
    }
    for package in workspace::packages(root)? {
        let folder = package.folder().strip_prefix(root).unwrap_or(package.folder());
        if let Some(graph) = graphs.get(&*folder.to_string_lossy()) {
            faults.extend(imports::rising(graph, package.rooms()));
        }
    }
    if !faults.is_empty() {
        bail!(
            "modules import one another in a ring, or a room one above it:\n  {}",
            faults.join("\n  ")
        );
    }
    Ok(Verdict::Passed)
}

/// No type has more methods than the bound allows.
pub(crate) fn check_methods(root: &Path) -> Result<Verdict> {
    let faults = types::faults(&types::methods(&product(root)?), METHODS_MAX);
    if !faults.is_empty() {
        bail!("a type does too much:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// All Rust files but tests.
fn product(root: &Path) -> Result<Vec<Source>> {
    Ok(source::all(root)?.into_iter().filter(|it| !it.is_test).collect())
}

/// Prints the spread of some sizes, and how many are over each of these bounds.
fn show_sizes(what: &str, mut sizes: Vec<usize>, bounds: &[usize]) {
    sizes.sort_unstable();
    let at = |share: f64| {
        let index = (sizes.len().saturating_sub(1)) as f64 * share;
        sizes.get(index.round() as usize).copied().unwrap_or_default()
    };
    print!("{what:<28} median {}, 90 % {}, 99 % {}, most {}", at(0.5), at(0.9), at(0.99), at(1.0));
    for bound in bounds {
        print!(", {} over {bound}", sizes.iter().filter(|size| *size > bound).count());
    }
    println!(" (of {})", sizes.len());
}

fn show_largest(what: &str, mut named: Vec<(usize, String)>, top: usize) {
    println!("{what}");
    named.sort_by(|left, right| right.cmp(left));
    for (size, name) in named.iter().take(top) {
        println!("  {size:>5}  {name}");
    }
}
