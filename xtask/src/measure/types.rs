//! Which type a method is of: types of one name are told apart by the modules that declare them.

use std::collections::BTreeMap;

use super::imports::{absolute, imports, module};
use super::source::Source;

/// How many methods each type has, by its package and its path in that; a trait's aren't counted.
pub(super) fn methods(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut packages = BTreeMap::<&str, Package>::new();
    for source in sources {
        packages.entry(&source.package).or_default().add(source);
    }
    let mut methods = BTreeMap::new();
    for source in sources {
        let package = &packages[&*source.package];
        for (name, count) in source.implementations() {
            let path = package.path(&module(source).unwrap_or_default(), &name);
            *methods.entry(format!("{} {path}", source.package)).or_default() += count;
        }
    }
    methods
}

/// Each type that has more methods than `most`.
pub(super) fn faults(methods: &BTreeMap<String, usize>, most: usize) -> Vec<String> {
    let over = methods.iter().filter(|(_, count)| **count > most);
    over.map(|(name, count)| format!("{name}: {count} methods, at most {most}")).collect()
}

/// A package's modules, the root with an empty name.
#[derive(Default)]
struct Package {
    texts: BTreeMap<String, String>,
    /// The modules that declare a type of that name.
    declaring: BTreeMap<String, Vec<String>>,
}

impl Package {
    fn add(&mut self, source: &Source) {
        let module = module(source).unwrap_or_default();
        for name in source.declared() {
            self.declaring.entry(name).or_default().push(module.clone());
        }
        let text = self.texts.entry(module).or_default();
        text.push_str(&source.lines.join("\n"));
    }

    /// The path of the type that `name` is in `module`; the name alone, if that can't be told.
    fn path(&self, module: &str, name: &str) -> String {
        let declaring = self.declaring.get(name).map_or(&[][..], Vec::as_slice);
        let found = match declaring {
            [only] => Some(only.as_str()),
            _ => self.seen_from(module, name, declaring),
        };
        match found {
            Some("") | None => name.to_owned(),
            Some(module) => format!("{module}::{name}"),
        }
    }

    /// The one of the modules `declaring` a type that `module` means by its name: itself, where it imports the type
    /// from, or the nearest one that it lies in.
    fn seen_from<'a>(&self, module: &str, name: &str, declaring: &'a [String]) -> Option<&'a str> {
        let declares = |wanted: &str| declaring.iter().find(|it| *it == wanted).map(|it| &**it);
        let import = || {
            let paths = imports(self.texts.get(module)?);
            let path = paths.iter().find(|path| path.rsplit("::").next() == Some(name))?;
            let path = absolute(path, module, &self.texts)?;
            around(&path).find_map(declares)
        };
        declares(module).or_else(import).or_else(|| around(module).find_map(declares))
    }
}

/// The modules that `path` lies in, the nearest first, the root last.
fn around(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(above(path), |path| above(path))
}

fn above(path: &str) -> Option<&str> {
    match path.rsplit_once("::") {
        Some((above, _)) => Some(above),
        None => (!path.is_empty()).then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let source =
            |(module, text): &(&str, &str)| Source::new(format!("crates/a/src/{module}.rs"), text);
        methods(&files.iter().map(source).collect::<Vec<_>>()).into_iter().collect()
    }

    #[test]
    fn types_of_one_name_are_told_apart_by_where_they_are_declared() {
        let found = counted(&[
            ("lib", "pub(crate) struct World;\nimpl World {\n    fn one() {}\n}\n"),
            ("mesh", "struct World<'a> {\n}\nimpl<'a> World<'a> {\n    fn one() {}\n}\n"),
            ("mesh/part", "use super::{Fleet, World};\nimpl World<'_> {\n    fn two() {}\n}\n"),
            ("siege", "use crate::mesh::World;\nimpl World {\n    fn three() {}\n}\n"),
            ("siege/part", "impl World {\n    fn two() {}\n}\n"),
        ]);
        assert_eq!(found, [("crates/a World".into(), 2), ("crates/a mesh::World".into(), 3)]);
    }

    #[test]
    fn a_type_that_is_declared_once_is_that_one_wherever_its_methods_stand() {
        let found = counted(&[
            ("one", "pub enum Only {\n}\n"),
            ("two", "use crate::Only;\nimpl Only {\n    fn one() {}\n}\n"),
            ("three", "impl Only {\n    fn two() {}\n}\nimpl Strange {\n    fn one() {}\n}\n"),
        ]);
        assert_eq!(found, [("crates/a Strange".into(), 1), ("crates/a one::Only".into(), 2)]);
    }

    #[test]
    fn a_type_over_the_bound_is_a_fault() {
        let methods = [("a One", 50), ("a Two", 51), ("a Three", 0)];
        let methods = methods.map(|(name, count)| (name.to_owned(), count)).into();
        assert_eq!(faults(&methods, 50), ["a Two: 51 methods, at most 50"]);
    }
}
