//! The versions of this program, of the server, of other nodes and of workers.

use super::named;
use crate::doctor::diagnosis::Diagnosis;

const CHECK: &str = "versions";

/// Versions, each with its place in words.
#[derive(Debug, Clone, Default)]
pub(in crate::doctor) struct Versions {
    /// The version of this program.
    pub(in crate::doctor) program: String,
    pub(in crate::doctor) server: Option<String>,
    /// The other nodes and the workers.
    pub(in crate::doctor) others: Vec<(String, String)>,
    /// The form in which entries of a log are written, and the newest that all nodes read.
    pub(in crate::doctor) forms: Option<[u32; 2]>,
}

/// Judges the versions.
pub(in crate::doctor) fn judge(versions: &Versions) -> Vec<Diagnosis> {
    let Versions { program, server, others, forms } = versions;
    let mut found = Vec::new();
    if let Some(server) = server.as_ref().filter(|server| *server != program) {
        let words = format!("this program is version {program}, and the server version {server}");
        found.push(Diagnosis::warning(CHECK, words, "restart the server with the newer program, or use its own here"));
    }
    let usual = server.as_ref().unwrap_or(program);
    let different = others.iter().filter(|(_, version)| version != usual);
    let different: Vec<String> = different.map(|(name, version)| format!("{name} has version {version}")).collect();
    if !different.is_empty() {
        let words = format!("the server has version {usual}, {}", named(&different));
        let advice = "finish the upgrade: replace the program there, and restart it";
        found.push(Diagnosis::warning(CHECK, words, advice));
    }
    if let Some([writes, reads]) = forms.filter(|[writes, reads]| reads > writes) {
        let words = format!("entries of the log are written in form {writes}, and all nodes read form {reads}");
        found.push(Diagnosis::warning(CHECK, words, "`kelos nodes raise` ends the upgrade"));
    }
    if found.is_empty() {
        let all = match (server, others.len()) {
            (None, _) => String::new(),
            (Some(_), 0) => ", as the server".to_owned(),
            (Some(_), 1) => ", as the server and one other process".to_owned(),
            (Some(_), others) => format!(", as the server and {others} other processes"),
        };
        found.push(Diagnosis::ok(CHECK, format!("this program is version {program}{all}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(server: Option<&str>, others: &[(&str, &str)], forms: Option<[u32; 2]>) -> Vec<String> {
        let others = others.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect();
        let versions = Versions { program: "0.2".to_owned(), server: server.map(str::to_owned), others, forms };
        judge(&versions).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn versions_that_agree_are_one_line() {
        assert_eq!(told(None, &[], None), ["Ok this program is version 0.2"]);
        assert_eq!(told(Some("0.2"), &[], None), ["Ok this program is version 0.2, as the server"]);
        let others = [("node a", "0.2"), ("worker w", "0.2")];
        let all = "Ok this program is version 0.2, as the server and 2 other processes";
        assert_eq!(told(Some("0.2"), &others, Some([2, 2])), [all]);
    }

    #[test]
    fn versions_that_differ_are_named() {
        let others = [("node a", "0.1"), ("worker w", "0.2")];
        assert_eq!(
            told(Some("0.1"), &others, Some([1, 2])),
            [
                "Warning this program is version 0.2, and the server version 0.1",
                "Warning the server has version 0.1, worker w has version 0.2",
                "Warning entries of the log are written in form 1, and all nodes read form 2",
            ]
        );
    }
}
