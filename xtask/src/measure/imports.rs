//! Rings of imports: modules of one crate of which each is used by the next, and the last by the first.
//!
//! A module and those that it is made of count as apart, but what passes between them (`super`, `self`) is no
//! import: they are one thing in several files.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// The modules that each module of a crate uses.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The rings of each package that has any, the largest first; a ring is the names of its modules.
pub(super) fn rings(graphs: &BTreeMap<String, Graph>) -> BTreeMap<String, Vec<Vec<String>>> {
    let rings = graphs.iter().map(|(package, graph)| (package.clone(), components(graph)));
    rings.filter(|(_, rings)| !rings.is_empty()).collect()
}

/// The imports of a package that lead from one of its `rooms` up to another; the lowest comes first.
pub(super) fn rising(graph: &Graph, rooms: &[String]) -> Vec<String> {
    let floor = |module: &str| {
        let room = module.split("::").next()?;
        rooms.iter().position(|known| known == room)
    };
    let imports = graph.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    let rising =
        imports.filter(|(from, to)| floor(from).is_some_and(|from| floor(to) > Some(from)));
    rising.map(|(from, to)| format!("{from} imports {to}")).collect()
}

/// The imports of each package.
pub(super) fn graphs(sources: &[Source]) -> BTreeMap<String, Graph> {
    let mut packages = BTreeMap::<_, BTreeMap<String, String>>::new();
    for source in sources {
        let Some(module) = module(source) else { continue };
        let text = source.lines.join("\n");
        packages.entry(source.package.clone()).or_default().insert(module, text);
    }
    packages.into_iter().map(|(package, modules)| (package, graph(&modules))).collect()
}

/// `a::b` for `src/a/b.rs`, nothing for the crate's root; `None` for what isn't in `src`.
pub(super) fn module(source: &Source) -> Option<String> {
    let path = source.path.split_once("/src/")?.1.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let is_root = path == "lib" || path == "main";
    Some(if is_root { String::new() } else { path.replace('/', "::") })
}

fn graph(modules: &BTreeMap<String, String>) -> Graph {
    let root = modules.get("").map(String::as_str).unwrap_or_default();
    let exported: BTreeMap<String, String> = imports(root)
        .into_iter()
        .filter_map(|path| {
            let name = path.rsplit("::").next()?.to_owned();
            Some((name, nearest(modules, &absolute(&path, "", modules)?)?))
        })
        .collect();
    let mut graph = Graph::new();
    for (module, text) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        let uses = imports(text).into_iter().filter_map(|path| {
            let path = absolute(&path, module, modules)?;
            match nearest(modules, &path) {
                Some(found) => Some(found),
                // A name that the root exports lies elsewhere.
                None => exported.get(path.split("::").next()?).cloned(),
            }
        });
        let uses = uses.filter(|used| !is_part(used, module) && !is_part(module, used)).collect();
        graph.insert(module.clone(), uses);
    }
    graph
}

/// Whether `part` is `whole` or lies within it.
fn is_part(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The deepest module that `path` lies in, if it isn't the root.
fn nearest(modules: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let mut path = path;
    loop {
        if modules.contains_key(path) {
            return Some(path.to_owned()).filter(|path| !path.is_empty());
        }
        path = path.rsplit_once("::")?.0;
    }
}

/// `path`, as written in `module`, from the crate's root on; `None` if it leads to another crate.
pub(super) fn absolute(
    path: &str,
    module: &str,
    modules: &BTreeMap<String, String>,
) -> Option<String> {
    let (first, rest) = path.split_once("::").unwrap_or((path, ""));
    let base = match first {
        "crate" => String::new(),
        "self" => module.to_owned(),
        "super" => {
            let above = module.rsplit_once("::").map_or("", |(above, _)| above);
            let rest = if rest.is_empty() { "self" } else { rest };
            let rest =
                if rest.starts_with("super") { rest.to_owned() } else { format!("self::{rest}") };
            return absolute(&rest, above, modules);
        }
        _ => {
            let child = joined(module, first);
            modules.contains_key(&child).then_some(child)?
        }
    };
    Some(joined(&base, rest))
}

fn joined(base: &str, rest: &str) -> String {
    match (base, rest) {
        (_, "") => base.to_owned(),
        ("", _) => rest.to_owned(),
        _ => format!("{base}::{rest}"),
    }
}

/// The paths that the `use` declarations of a text name.
pub(super) fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut declaration = String::new();
    for line in text.lines() {
        let line = line.trim();
        let begins = line.starts_with("use ")
            || (line.starts_with("pub") && line.contains(" use ") && !line.contains('"'));
        if declaration.is_empty() && !begins {
            continue;
        }
        declaration += line;
        if line.ends_with(';') {
            let tree = declaration.split_once("use ").map_or("", |(_, tree)| tree);
            expand("", tree.trim_end_matches(';'), &mut found);
            declaration.clear();
        }
    }
    found
}

/// Adds the paths of a tree such as `a::{b, c::{d, e as f}}`.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim_end_matches("::*");
        let path = path.trim().trim_end_matches("::self");
        if !path.is_empty() {
            found.push(format!("{prefix}{path}").trim_end_matches("::self").to_owned());
        }
        return;
    };
    let list = list.trim_end().strip_suffix('}').unwrap_or(list);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{head}"), &list[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&format!("{prefix}{head}"), &list[start..], found);
}

/// The strongly connected components with more than one module, the largest first.
///
/// Two modules are in one if each can be reached from the other; crates have tens of modules.
fn components(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut seen = BTreeSet::new();
    let mut rings = Vec::new();
    for module in graph.keys() {
        if seen.contains(module) {
            continue;
        }
        let both_ways =
            |other: &&&String| reached.get(**other).is_some_and(|it| it.contains(module));
        let ring: Vec<String> =
            reached[module].iter().filter(both_ways).map(|other| (*other).clone()).collect();
        seen.extend(ring.iter().cloned());
        if ring.len() > 1 {
            rings.push(ring);
        }
    }
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
    rings
}

fn reachable<'a>(graph: &'a Graph, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(module: &str, text: &str) -> Source {
        Source::new(format!("crates/a/src/{module}.rs"), text)
    }

    #[test]
    fn trees_of_imports_become_paths() {
        let text =
            "use a::{b, c::{d, e as f},\n    self};\npub(crate) use super::g::*;\nlet user = 1;\n";
        assert_eq!(imports(text), ["a::b", "a::c::d", "a::c::e", "a", "super::g"]);
    }

    #[test]
    fn modules_that_import_one_another_are_a_ring_through_what_the_root_exports() {
        let sources = [
            source("lib", "mod one;\nmod two;\nmod three;\npub use two::Two;\n"),
            source("one", "use crate::Two;\n"),
            source("two", "use crate::three::{Three, sort};\n"),
            source("three", "use crate::one::One;\nuse core::fmt;\n"),
            source("four", "use crate::one::One;\n"),
        ];
        let rings = rings(&graphs(&sources));
        assert_eq!(rings["crates/a"], [["one", "three", "two"]]);
    }

    #[test]
    fn imports_of_a_room_point_down() {
        let sources = [
            source("cellar", ""),
            source("cellar/wine", "use crate::attic::Trunk;\n"),
            source("attic", "use crate::cellar::wine::Wine;\nuse crate::garden::Rose;\n"),
            source("garden", "use crate::attic::Trunk;\n"),
        ];
        let rooms = ["cellar", "attic"].map(String::from);
        assert_eq!(rising(&graphs(&sources)["crates/a"], &rooms), ["cellar::wine imports attic"]);
    }

    #[test]
    fn a_module_and_its_parts_are_no_ring() {
        let sources = [
            source("one", "mod part;\nuse part::Part;\n"),
            source("one/part", "use super::One;\nuse super::other::Other;\n"),
            source("one/other", "use super::{One, part};\n"),
        ];
        assert_eq!(rings(&graphs(&sources))["crates/a"], [["one::other", "one::part"]]);
    }
}
