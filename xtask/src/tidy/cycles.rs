//! Modules of a crate that depend on each other in a cycle.
//!
//! The modules below one module, each taken together with all below it, must have an order. A module and its own parent may
//! depend on each other: a folder is one thing. The dependencies of a module are read from its paths that begin with `crate`, `super`
//! or `self`; names that a module re-exports from another one lead there.

use std::collections::{BTreeMap, BTreeSet};

use super::ratchet::KnownFaults;
use super::source::{code, is_for_tests, product};
use super::{Text, Tree};

/// The names from the root of the crate.
type Path = Vec<String>;

/// The dependencies of one module on its neighbour, by the module that contains both.
type Arrows = BTreeMap<Path, BTreeMap<String, BTreeMap<String, String>>>;

/// How many re-exports of a name are followed.
const PATIENCE: usize = 8;

#[derive(Default)]
struct Module {
    file: String,
    /// The imported names, and their sources.
    uses: BTreeMap<String, Path>,
    /// All paths in the code.
    paths: Vec<Path>,
}

pub(super) fn standing(tree: &Tree) -> KnownFaults {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Module>> = BTreeMap::new();
    for file in tree.ending(".rs").filter(|file| !is_for_tests(&file.path)) {
        if let Some((name, path)) = place(&file.path) {
            crates.entry(name).or_default().insert(path, module(file));
        }
    }
    let mut standing = KnownFaults::new();
    for modules in crates.values() {
        for (above, arrows) in arrows(modules) {
            for circle in circles(&arrows) {
                let why = circle.iter().flat_map(|from| {
                    let inside = arrows[from].iter().filter(|(to, _)| circle.contains(*to));
                    inside.map(|(to, why)| {
                        format!("{} -> {to} ({why})", [&above[..], std::slice::from_ref(from)].concat().join("::"))
                    })
                });
                let why = why.collect();
                standing.insert(format!("cycle {}", Vec::from_iter(circle.iter().cloned()).join(" ")), (1, why));
            }
        }
    }
    standing
}

/// The crate and the module of a file.
fn place(path: &str) -> Option<(&str, Path)> {
    let (name, inside) = path.split_once("/src/")?;
    let inside = inside.strip_suffix(".rs")?;
    let mut path: Path = inside.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    Some((name, path))
}

fn module(file: &Text) -> Module {
    let code = code(&product(&file.text));
    let mut module = Module { file: file.path.clone(), ..Module::default() };
    let mut rest = String::new();
    for (n, statement) in code.split(';').enumerate() {
        let at = statement.rfind("use ").filter(|at| is_import(&statement[..*at]));
        match at {
            Some(at) => {
                rest.push_str(&statement[..at]);
                import(&statement[at + 4..], &[], &mut module);
            }
            None => rest.push_str(statement),
        }
        rest.push(if n == 0 { ';' } else { ' ' });
    }
    for start in ["crate::", "super::", "self::"] {
        module.paths.extend(paths(&rest, start));
    }
    module
}

/// Whether an import begins after this text: at the beginning of a line, but for `pub`.
fn is_import(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line == "pub" || line.starts_with("pub(") && line.ends_with(')')
}

/// Adds the tree of an import: `a::{b, c::d as e, f::*}`.
fn import(tree: &str, before: &[String], module: &mut Module) {
    let tree = tree.trim();
    let (head, branches) = match tree.split_once('{') {
        Some((head, rest)) => (head.trim().trim_end_matches("::"), rest.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let (head, alias) = head.split_once(" as ").unwrap_or((head, ""));
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "*");
    let mut path = before.to_vec();
    path.extend(names.map(str::to_owned));
    if let Some(branches) = branches {
        for branch in branches_of(branches) {
            import(branch, &path, module);
        }
        return;
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = if alias.is_empty() { path.last().cloned().unwrap_or_default() } else { alias.trim().to_owned() };
    module.uses.insert(name, path.clone());
    module.paths.push(path);
}

/// The branches of a tree, which have braces of their own.
fn branches_of(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut branches) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&text[from..]);
    branches.retain(|branch| !branch.trim().is_empty());
    branches
}

/// The paths in code that begin with a word.
fn paths(code: &str, start: &str) -> Vec<Path> {
    let begins = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let places = code.match_indices(start).map(|(at, _)| at).filter(begins);
    let is_of_a_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let text = |at: usize| code[at..].split(|c| !is_of_a_path(c)).next().unwrap_or_default();
    places.map(|at| text(at).split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()).collect()
}

/// The target of a path in a module: the innermost module on it, followed through re-exports.
fn target(modules: &BTreeMap<Path, Module>, from: &Path, path: &[String], patience: usize) -> Option<Path> {
    let mut at = from.clone();
    let mut names = path.iter();
    let first = names.next()?;
    match first.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            at.pop()?;
        }
        name => at = step(modules, &at, name, patience)?,
    }
    for name in names {
        if name == "super" {
            at.pop()?;
            continue;
        }
        match step(modules, &at, name, patience) {
            Some(next) => at = next,
            None => break,
        }
    }
    Some(at)
}

/// The module that a name of a module is, or comes from.
fn step(modules: &BTreeMap<Path, Module>, at: &Path, name: &str, patience: usize) -> Option<Path> {
    let below = [at.as_slice(), &[name.to_owned()]].concat();
    if modules.contains_key(&below) {
        return Some(below);
    }
    let path = modules.get(at)?.uses.get(name)?;
    let elsewhere = path.first().is_none_or(|first| first == name);
    if patience == 0 || elsewhere { None } else { target(modules, at, path, patience - 1) }
}

fn arrows(modules: &BTreeMap<Path, Module>) -> Arrows {
    let mut arrows = Arrows::new();
    for (from, module) in modules {
        for path in &module.paths {
            let Some(to) = target(modules, from, path, PATIENCE) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
                let needs = arrows.entry(from[..shared].to_vec()).or_default().entry(one.clone()).or_default();
                needs.entry(other.clone()).or_insert_with(|| format!("{}: {}", module.file, path.join("::")));
            }
        }
    }
    arrows
}

/// The groups in which each depends on each, directly or not.
fn circles(arrows: &BTreeMap<String, BTreeMap<String, String>>) -> BTreeSet<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            for to in arrows.get(at).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|from| (from, reach(from))).collect();
    let group = |from: &String| -> BTreeSet<String> {
        let mutual = reached[from].iter().filter(|to| reached.get(to).is_some_and(|back| back.contains(from)));
        mutual.cloned().collect()
    };
    arrows.keys().map(group).filter(|group| group.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| Text { path: format!("crates/x/src/{path}"), text: (*text).to_owned() };
        standing(&Tree { root: "/".into(), files: files.iter().map(file).collect() }).into_keys().collect()
    }

    #[test]
    fn circles_are_found_by_imports_paths_and_names_that_are_passed_on() {
        let lib = ("lib.rs", "mod a; mod b; mod c;\npub use c::Thing;\n");
        assert_eq!(
            found(&[lib, ("a.rs", "use crate::b::{self, X};"), ("b.rs", "fn f(x: super::a::Y) {}")]),
            ["cycle a b"]
        );
        assert_eq!(
            found(&[lib, ("a.rs", "use crate::Thing;"), ("c.rs", "use crate::a::{Y, deep::Z};")]),
            ["cycle a c"]
        );
        let late = "#[cfg(test)]\nmod tests;\nuse crate::b::X;";
        assert_eq!(found(&[lib, ("a.rs", late), ("b.rs", "use super::a::Y;")]), ["cycle a b"]);
        let deep = [lib, ("a/mod.rs", ""), ("a/one.rs", "use crate::b::X;"), ("b.rs", "use super::a::Y;")];
        assert_eq!(found(&deep), ["cycle a b"]);
    }

    #[test]
    fn parents_tests_and_texts_make_no_circle() {
        let parent = [("a/mod.rs", "mod b; use b::X;"), ("a/b.rs", "use super::Y;")];
        assert!(found(&parent).is_empty());
        let test = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "// crate::a::Y\n#[cfg(test)]\nmod tests {\n    use crate::a::Y;\n}"),
        ];
        assert!(found(&test).is_empty());
    }
}
