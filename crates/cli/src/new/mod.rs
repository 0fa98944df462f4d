//! `kelos new --rust`: a Rust program with jobs of its own, from templates.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::Failure;
use crate::options::Form;
use crate::templates::{self, Template};
use crate::text;

#[derive(clap::Args)]
pub(crate) struct NewArgs {
    /// Folder of the project, whose last part is its name; it is made if it does not exist
    #[arg(value_name = "NAME", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// A Rust program with jobs of its own; `kelos init` writes projects of scripts
    #[arg(long, required = true)]
    rust: bool,
    /// Sources of Kelos that the program is built with, instead of the published package
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    sources: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

const TEMPLATES: [Template; 5] = [
    Template { path: "Cargo.toml", about: "the package, with Kelos as a library", text: include_str!("manifest.toml") },
    Template { path: "src/lib.rs", about: "the jobs, and when they run", text: include_str!("lib.rs") },
    Template { path: "src/main.rs", about: "the program", text: include_str!("program.rs") },
    Template { path: "tests/week.rs", about: "a week on a virtual clock", text: include_str!("week.rs") },
    Template { path: ".gitignore", about: "leaves state and build out of git", text: include_str!("gitignore") },
];

pub(crate) fn run(args: &NewArgs) -> Result<u8, Failure> {
    let dir = &args.dir;
    let doing = format!("make a project in {}", dir.display());
    let name = package_name(dir).map_err(|wrong| Failure::usage(format!("{doing}: {wrong}")))?;
    let dependency = dependency(args.sources.as_deref())
        .map_err(|wrong| Failure::usage(format!("{doing}: {wrong}")).hint("name the root of a checkout of Kelos"))?;
    if dir.exists() && !dir.is_dir() {
        return Err(Failure::usage(format!("{doing}: it is a file, expected a folder")));
    }
    let all: Vec<&Template> = TEMPLATES.iter().collect();
    let taken = templates::taken(dir, &all);
    if !taken.is_empty() {
        let exist = format!("{doing}: {} exists", taken.join(", "));
        return Err(Failure::bad(exist).hint(templates::NOTHING_WRITTEN));
    }
    let library = name.replace('-', "_");
    let filled = |text: &str| text.replace("NAME", &name).replace("LIBRARY", &library).replace("KELOS", &dependency);
    templates::write(dir, &all, filled).map_err(|error| Failure::bad(format!("{doing}: {error}")))?;
    if args.form.json {
        let paths: Vec<_> = all.iter().map(|one| one.path).collect();
        text::json(&json!({ "dir": dir.to_string_lossy(), "name": name, "written": paths }));
    } else {
        text::line(report(dir, &all));
    }
    Ok(0)
}

/// The name of the package, which cargo and the compiler must take: that of the folder.
fn package_name(dir: &Path) -> Result<String, String> {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-' || one == '_');
    match (fits, RESERVED.contains(&name)) {
        (true, false) => Ok(name.to_owned()),
        (true, true) => Err(format!("\"{name}\" means something else in Rust, expected another name")),
        _ => Err(format!("\"{name}\" is no name of a package, expected small letters, digits, - and _, such as shop")),
    }
}

/// Names that the compiler, cargo or the project itself have taken.
const RESERVED: [&str; 56] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "jiff",
    "kelos",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "serde_json",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "tokio",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "while",
];

/// The fields of the dependency on Kelos.
fn dependency(sources: Option<&Path>) -> Result<String, String> {
    let Some(sources) = sources else { return Ok(format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))) };
    let package = sources.join("crates").join("kelos");
    let is_there = package.join("Cargo.toml").is_file();
    let path = package.canonicalize().ok().filter(|_| is_there);
    let path = path.as_deref().and_then(Path::to_str).ok_or_else(|| {
        format!("expected the sources of Kelos in {}, which has no crates/kelos/Cargo.toml", sources.display())
    })?;
    // A path may have quotes and backslashes; a string of JSON is one of TOML.
    Ok(format!("path = {}", json!(path)))
}

/// The list of the files that were written, and the next two commands.
fn report(dir: &Path, written: &[&Template]) -> String {
    let mut lines = templates::listed(dir, written);
    let (place, argument) = templates::argument(dir);
    lines.push(format!("Next{place}:"));
    lines.extend((!argument.is_empty()).then(|| format!("  cd{argument}")));
    lines.extend(["  cargo test".to_owned(), "  cargo run".to_owned()]);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_cargo_takes() {
        let name = |dir: &str| {
            package_name(Path::new(dir))
                .map_err(|wrong| wrong.split(", expected").next().unwrap_or_default().to_owned())
        };
        assert_eq!(name("shop"), Ok("shop".to_owned()));
        assert_eq!(name("./etl/day-2_x/"), Ok("day-2_x".to_owned()));
        assert_eq!(name("match"), Err("\"match\" means something else in Rust".to_owned()));
        for wrong in ["", ".", "..", "/", "2day", "Shop", "a b", "é", "-x"] {
            assert!(name(wrong).is_err_and(|said| said.ends_with("is no name of a package")), "{wrong}");
        }
    }
}
