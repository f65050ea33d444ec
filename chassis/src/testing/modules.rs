//! How the modules of a crate depend on each other, read from its sources, for a test that fails on a cycle.
//!
//! A module includes everything below it, and is compared with its siblings: `a` depends on `b` when any file of `a` refers to
//! an item of `b`. Dependencies between a module and its ancestors do not count, since a parent re-exports its children and
//! children import from their parent. Tests and `#[cfg(test)]` items are left out.

mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use self::paths::{Source, Use};

/// A module by its names from the root of the crate, which is empty.
type Module = Vec<String>;

/// The longest chain of re-exports that is followed.
const MAX_RENAMES: usize = 16;

/// The modules of one crate.
#[derive(Debug)]
pub struct Modules {
    sources: BTreeMap<Module, Source>,
    /// From a module to a sibling, with the first file and the first path that make the dependency.
    arrows: BTreeMap<(Module, Module), String>,
}

impl Modules {
    /// Reads the crate whose `Cargo.toml` is in that folder: `env!("CARGO_MANIFEST_DIR")`.
    ///
    /// # Errors
    /// When a source file cannot be read.
    pub fn of_crate(folder: impl AsRef<Path>) -> std::io::Result<Self> {
        let mut sources = BTreeMap::new();
        read_folder(&folder.as_ref().join("src"), &[], &mut sources)?;
        Ok(Self::new(sources))
    }

    fn new(sources: BTreeMap<Module, Source>) -> Self {
        let mut modules = Self { sources, arrows: BTreeMap::new() };
        modules.drop_tests();
        for (from, source) in &modules.sources {
            for used in &source.uses {
                let Some(arrow) = between_siblings(from, &modules.target(from, used, MAX_RENAMES)) else {
                    continue;
                };
                let example = format!("{}: {}", from.join("::"), used.path.join("::"));
                modules.arrows.entry(arrow).or_insert(example);
            }
        }
        modules
    }

    /// The violations of the layering of a crate, one line each: every cycle between sibling modules, and every dependency of a
    /// lower layer on a higher one.
    ///
    /// The layers are given from the lowest to the highest, each with the names of its top-level modules; `*` stands for
    /// all modules that no layer names.
    pub fn violations(&self, layers: &[&[&str]]) -> Vec<String> {
        let mut found = self.cycles();
        let layer_of = |module: &str| {
            let layer = |name: &str| layers.iter().position(|layer| layer.contains(&name));
            layer(module).or_else(|| layer("*"))
        };
        for ((from, to), example) in &self.arrows {
            let ([from], [to]) = (from.as_slice(), to.as_slice()) else { continue };
            if layer_of(from) < layer_of(to) {
                found.push(format!("{from} is below {to} and depends on it ({example})"));
            }
        }
        found
    }

    /// Each set of siblings that reach each other, with the dependencies between them.
    fn cycles(&self) -> Vec<String> {
        let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
            self.arrows.keys().map(|(from, _)| (from, self.reached_from(from))).collect();
        let mut told = BTreeSet::new();
        let mut cycles = Vec::new();
        for (module, reached) in &reachable {
            if !reached.contains(module) || told.contains(module) {
                continue;
            }
            let goes_back = |other: &&Module| reachable.get(*other).is_some_and(|all| all.contains(module));
            let circle: BTreeSet<&Module> = reached.iter().copied().filter(goes_back).collect();
            let inside =
                self.arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
            let arrows: Vec<String> =
                inside.map(|((_, to), example)| format!("{} ({example})", to.join("::"))).collect();
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            cycles.push(format!("a cycle of {}: {}", names.join(", "), arrows.join(", ")));
            told.extend(circle);
        }
        cycles
    }

    fn reached_from(&self, start: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            for (from, to) in self.arrows.keys() {
                if from == module && reached.insert(to) {
                    open.push(to);
                }
            }
        }
        reached
    }

    /// The module in which a path ends, by way of what the modules on it import.
    fn target(&self, from: &Module, used: &Use, renames: usize) -> Module {
        let mut module = Module::new();
        let mut names = used.path.iter();
        match names.next().map(String::as_str) {
            Some("crate") => {}
            Some("super") => module.extend(from.iter().take(from.len().saturating_sub(1)).cloned()),
            Some("self") => module.clone_from(from),
            _ => return from.clone(),
        }
        for name in names {
            if name == "super" {
                module.pop();
                continue;
            }
            module.push(name.clone());
            if self.sources.contains_key(&module) {
                continue;
            }
            module.pop();
            let imports = self.sources.get(&module).map(|source| source.uses.as_slice()).unwrap_or_default();
            return match imports.iter().find(|import| import.name.as_ref() == Some(name)) {
                Some(import) if renames > 0 => self.target(&module, import, renames - 1),
                _ => module,
            };
        }
        module
    }

    fn drop_tests(&mut self) {
        let tests: Vec<Module> = self
            .sources
            .iter()
            .flat_map(|(module, source)| {
                source
                    .test_modules
                    .iter()
                    .map(|test| [module.as_slice(), std::slice::from_ref(test)].concat())
            })
            .collect();
        self.sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    }
}

/// The arrow between the ancestors of two modules that are siblings; none when one module is above the other.
fn between_siblings(from: &Module, to: &Module) -> Option<(Module, Module)> {
    let shared = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let of = |module: &Module| module.get(..=shared).map(<[String]>::to_vec);
    Some((of(from)?, of(to)?))
}

fn read_folder(
    folder: &Path,
    module: &[String],
    sources: &mut BTreeMap<Module, Source>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let child = [module, &[name.to_owned()]].concat();
        if path.is_dir() {
            read_folder(&path, &child, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_parent = name == "mod" || (module.is_empty() && matches!(name, "lib" | "main"));
            let module = if is_parent { module.to_vec() } else { child };
            sources.insert(module, Source::parse(&std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let module = |path: &str| path.split_terminator("::").map(str::to_owned).collect();
        Modules::new(files.iter().map(|(path, text)| (module(path), Source::parse(text))).collect())
    }

    #[test]
    fn a_cycle_is_found_however_a_path_is_written() {
        let one_way = modules(&[("", "mod a; mod b;"), ("a", "use crate::b::{self, c::D as E};"), ("b", "")]);
        assert_eq!(one_way.violations(&[]), Vec::<String>::new());
        for back in [
            "use crate::a;",
            "use crate::{x, y::{z, w}, a::B};",
            "use super::a::*;",
            "fn f() { let it = crate::a::B { c: 1 }; }",
            "impl crate::a::T for X {}",
            "use crate::B;",
        ] {
            let both = modules(&[
                ("", "mod a; mod b; pub use self::a::B;"),
                ("a", "use crate::b::C;"),
                ("b", ""),
                ("b::inner", &back.replace("super::", "super::super::")),
            ]);
            let found = both.violations(&[]);
            assert_eq!(found.len(), 1, "{back}: {found:?}");
            assert!(found[0].starts_with("a cycle of a, b: "), "{found:?}");
        }
    }

    #[test]
    fn parents_tests_and_texts_make_no_cycle() {
        let fine = modules(&[
            ("", "mod a; mod b;"),
            ("a", "mod inner; use self::inner::X; use crate::b::Y;"),
            ("a::inner", "use super::Z; use crate::a::W;"),
            (
                "b",
                "// use crate::a;\n/* crate::a::B /* */ */ const T: &str = \"crate::a\"; #[cfg(test)] mod tests;\n\
                   #[cfg(test)] use crate::a::X; #[cfg(test)] mod more { use crate::a::V; } pub(in crate::b) fn f() {}",
            ),
            ("b::tests", "use crate::a::B;"),
        ]);
        assert_eq!(fine.violations(&[&["b"], &["*"]]), Vec::<String>::new());
    }

    #[test]
    fn a_lower_layer_does_not_know_a_higher_one() {
        let crate_ = modules(&[
            ("", "mod model; mod store; mod files; mod rpc;"),
            ("model", ""),
            ("store", "use crate::model::File; use crate::files::Draft;"),
            ("files", "use crate::model::File;"),
            ("rpc", "use crate::files::Draft;"),
        ]);
        let layers: [&[&str]; 4] = [&["model"], &["store"], &["*"], &["rpc"]];
        assert_eq!(
            crate_.violations(&layers),
            ["store is below files and depends on it (store: crate::files::Draft)"]
        );
    }
}
