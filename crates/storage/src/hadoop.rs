//! Hadoop's configuration: `core-site.xml` and `hdfs-site.xml`, as far as a client needs them.
//!
//! Absent: defaults of Hadoop's own jars, `xi:include` and entities of other files; the last two are reported where they occur.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use roxmltree::{Document, ParsingOptions};

use crate::StorageError;

/// The default port of a name node.
const NAME_NODE_PORT: u16 = 8020;
/// How many `${other.key}` in a row are resolved.
const DEEPEST: usize = 20;

/// The source of Hadoop's configuration.
#[derive(Clone, PartialEq, Eq)]
pub enum HadoopConf {
    /// A folder with `core-site.xml` and, if it exists, `hdfs-site.xml`.
    Folder(PathBuf),
    /// The files' contents.
    Texts {
        /// The content of `core-site.xml`.
        core_site: String,
        /// The content of `hdfs-site.xml`.
        hdfs_site: String,
    },
}

impl fmt::Debug for HadoopConf {
    /// Omits the texts: they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Texts { .. } => f.write_str("Texts"),
        }
    }
}

/// The properties of a configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Properties(BTreeMap<String, String>);

/// One name node of a name service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameNode {
    /// Its id in a name service with more than one.
    pub(crate) id: Option<String>,
    /// Its host and port.
    pub(crate) address: String,
}

impl Properties {
    /// Reads the files of a configuration. Without one there are no properties.
    pub(crate) fn read(conf: Option<&HadoopConf>) -> Result<Self, StorageError> {
        let mut all = BTreeMap::new();
        match conf {
            None => {}
            Some(HadoopConf::Folder(folder)) => {
                let (core_site, hdfs_site) = (folder.join("core-site.xml"), folder.join("hdfs-site.xml"));
                add(&mut all, &core_site.to_string_lossy(), &text_of(&core_site)?)?;
                if hdfs_site.exists() {
                    add(&mut all, &hdfs_site.to_string_lossy(), &text_of(&hdfs_site)?)?;
                }
            }
            Some(HadoopConf::Texts { core_site, hdfs_site }) => {
                add(&mut all, "core-site.xml", core_site)?;
                add(&mut all, "hdfs-site.xml", hdfs_site)?;
            }
        }
        Ok(Self(all))
    }

    /// A property, with its references resolved.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.0.get(key).map(|value| self.filled(value)).filter(|value| !value.is_empty())
    }

    /// All properties, with their references resolved.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(key, value)| (key.clone(), self.filled(value)))
    }

    /// The server of `fs.defaultFS`, the target of `hdfs:/path` and `hdfs:///path`.
    pub(crate) fn default_authority(&self, scheme: &str) -> Result<String, String> {
        let key = "fs.defaultFS in core-site.xml (in the folder HADOOP_CONF_DIR)";
        let found = self.get("fs.defaultFS").or_else(|| self.get("fs.default.name"));
        let default =
            found.ok_or_else(|| format!("without a server it needs {key}; or name one: {scheme}://SERVER/…"))?;
        let authority = default.strip_prefix("hdfs://").map(|rest| rest.split('/').next().unwrap_or_default());
        match authority {
            Some(authority) if !authority.is_empty() => Ok(authority.to_owned()),
            _ => Err(format!("without a server it needs an hdfs: URI as {key}, which is \"{default}\"")),
        }
    }

    /// The name nodes behind an authority: a host with a port, a host, or a name service.
    pub(crate) fn name_nodes(&self, authority: &str) -> Result<Vec<NameNode>, String> {
        if has_port(authority) {
            return Ok(vec![NameNode { id: None, address: authority.to_owned() }]);
        }
        let Some(ids) = self.name_node_ids(authority) else {
            let address = self.get(&format!("dfs.namenode.rpc-address.{authority}"));
            let address = address.unwrap_or_else(|| format!("{authority}:{NAME_NODE_PORT}"));
            return Ok(vec![NameNode { id: None, address }]);
        };
        let node = |id: String| {
            let key = format!("dfs.namenode.rpc-address.{authority}.{id}");
            let address = self.get(&key).ok_or(format!("hdfs-site.xml names its name node {id} without {key}"))?;
            Ok(NameNode { id: Some(id), address })
        };
        ids.into_iter().map(node).collect()
    }

    /// The addresses at which WebHDFS is served for an authority.
    pub(crate) fn web_addresses(&self, authority: &str, is_secure: bool) -> Vec<String> {
        let (kind, port) = if is_secure { ("https-address", 9871) } else { ("http-address", 9870) };
        if has_port(authority) {
            return vec![authority.to_owned()];
        }
        let ids = self.name_node_ids(authority).unwrap_or_default();
        let of_id = |id: &String| self.get(&format!("dfs.namenode.{kind}.{authority}.{id}"));
        let configured: Vec<String> = ids.iter().filter_map(of_id).collect();
        if configured.is_empty() { vec![format!("{authority}:{port}")] } else { configured }
    }

    /// Whether servers require authentication.
    pub(crate) fn is_secure(&self) -> bool {
        self.get("hadoop.security.authentication").is_some_and(|way| !way.eq_ignore_ascii_case("simple"))
    }

    fn name_node_ids(&self, service: &str) -> Option<Vec<String>> {
        let ids = self.get(&format!("dfs.ha.namenodes.{service}"))?;
        Some(ids.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect())
    }

    /// Replaces `${key}` by the property, `${env.NAME}` by the variable; unknown references are left as they are.
    fn filled(&self, value: &str) -> String {
        let mut filled = value.trim().to_owned();
        for _ in 0..DEEPEST {
            let Some((start, end, known)) = self.first_known(&filled) else { break };
            filled.replace_range(start..end, &known);
        }
        filled
    }

    fn first_known(&self, text: &str) -> Option<(usize, usize, String)> {
        let starts = text.match_indices("${").map(|(start, _)| start);
        starts.filter_map(|start| self.known_at(text, start)).next()
    }

    fn known_at(&self, text: &str, start: usize) -> Option<(usize, usize, String)> {
        let end = start + text[start..].find('}')?;
        let name = &text[start + 2..end];
        let of_environment = || name.strip_prefix("env.").and_then(|name| std::env::var(name).ok());
        let known = self.0.get(name).cloned().or_else(of_environment)?;
        Some((start, end + 1, known.trim().to_owned()))
    }
}

fn has_port(authority: &str) -> bool {
    authority.rsplit_once(']').map_or(authority, |(_, after)| after).contains(':')
}

fn text_of(file: &Path) -> Result<String, StorageError> {
    std::fs::read_to_string(file).map_err(|error| {
        let hint = if error.kind() == std::io::ErrorKind::NotFound {
            "nothing is there; HADOOP_CONF_DIR has to name the folder with core-site.xml".to_owned()
        } else {
            error.to_string()
        };
        unreadable(&file.to_string_lossy(), hint)
    })
}

fn unreadable(name: &str, detail: String) -> StorageError {
    StorageError::Other { what: "read", place: name.to_owned(), detail }
}

fn add(all: &mut BTreeMap<String, String>, name: &str, text: &str) -> Result<(), StorageError> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| unreadable(name, format!("expected the XML of a Hadoop configuration: {error}")))?;
    let root = document.root_element();
    if root.tag_name().name() != "configuration" {
        let found = root.tag_name().name();
        return Err(unreadable(name, format!("expected <configuration> around everything, not <{found}>")));
    }
    for element in root.children().filter(roxmltree::Node::is_element) {
        match element.tag_name().name() {
            "property" => add_property(all, element),
            "include" => tracing::warn!("{name} includes another file, which is not read"),
            _ => {}
        }
    }
    Ok(())
}

fn add_property(all: &mut BTreeMap<String, String>, property: roxmltree::Node<'_, '_>) {
    let part = |name| {
        let found = property.children().find(|child| child.tag_name().name() == name)?;
        Some(found.text().unwrap_or_default().trim().to_owned())
    };
    if let (Some(name), Some(value)) = (part("name"), part("value")) {
        all.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(properties: &[(&str, &str)]) -> String {
        let property =
            |(name, value): &(&str, &str)| format!("<property><name>{name}</name><value>{value}</value></property>");
        let all: String = properties.iter().map(property).collect();
        format!("<?xml version=\"1.0\"?>\n<configuration>{all}</configuration>")
    }

    fn properties(core: &[(&str, &str)], hdfs: &[(&str, &str)]) -> Properties {
        let conf = HadoopConf::Texts { core_site: site(core), hdfs_site: site(hdfs) };
        Properties::read(Some(&conf)).unwrap()
    }

    #[test]
    fn name_services_hosts_and_ports_lead_to_name_nodes() {
        let ha = properties(
            &[("fs.defaultFS", "hdfs://Ns_1"), ("domain", "example.org")],
            &[
                ("dfs.ha.namenodes.Ns_1", "a, b"),
                ("dfs.namenode.rpc-address.Ns_1.a", "one.${domain}:8020"),
                ("dfs.namenode.rpc-address.Ns_1.b", "two.${domain}:8020"),
                ("dfs.namenode.http-address.Ns_1.a", "one:9870"),
                ("dfs.namenode.http-address.Ns_1.b", "two:9870"),
                ("dfs.ha.namenodes.bad", "c"),
            ],
        );
        let addresses = |authority| -> Result<Vec<String>, String> {
            Ok(ha.name_nodes(authority)?.into_iter().map(|node| node.address).collect())
        };
        assert_eq!(ha.default_authority("hdfs").unwrap(), "Ns_1");
        assert_eq!(addresses("Ns_1").unwrap(), ["one.example.org:8020", "two.example.org:8020"]);
        assert_eq!(addresses("host").unwrap(), ["host:8020"]);
        assert_eq!(addresses("host:9").unwrap(), ["host:9"]);
        assert_eq!(addresses("[::1]").unwrap(), ["[::1]:8020"]);
        let expected = "hdfs-site.xml names its name node c without dfs.namenode.rpc-address.bad.c";
        assert_eq!(addresses("bad").unwrap_err(), expected);
        assert_eq!(ha.web_addresses("Ns_1", false), ["one:9870", "two:9870"]);
        assert_eq!(ha.web_addresses("host", true), ["host:9871"]);
    }

    #[test]
    fn references_that_nobody_knows_or_that_never_end_stay() {
        let odd = properties(&[("a", "${b}x"), ("b", "${a}"), ("c", "${nobody} ${d}"), ("d", "1")], &[]);
        assert_eq!(odd.get("c").unwrap(), "${nobody} 1");
        assert!(odd.get("a").is_some());
    }

    #[test]
    fn what_is_missing_is_named() {
        let none = Properties::read(None).unwrap();
        assert_eq!(
            none.default_authority("hdfs").unwrap_err(),
            "without a server it needs fs.defaultFS in core-site.xml (in the folder HADOOP_CONF_DIR); \
             or name one: hdfs://SERVER/…"
        );
        let local = properties(&[("fs.defaultFS", "file:///")], &[]);
        assert!(local.default_authority("hdfs").unwrap_err().ends_with("which is \"file:///\""));
    }

    #[test]
    fn broken_files_are_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Properties::read(Some(&HadoopConf::Folder(folder.path().to_owned()))).map(drop);
        let told = |error: StorageError| error.to_string().replace(&*folder.path().to_string_lossy(), "CONF");
        assert_eq!(
            told(read().unwrap_err()),
            "read CONF/core-site.xml: nothing is there; HADOOP_CONF_DIR has to name the folder with core-site.xml"
        );
        let write = |text: &str| std::fs::write(folder.path().join("core-site.xml"), text).unwrap();
        write("<configuration><property></configuration>");
        assert!(told(read().unwrap_err()).starts_with("read CONF/core-site.xml: expected the XML of a Hadoop"));
        write("<html></html>");
        assert_eq!(
            told(read().unwrap_err()),
            "read CONF/core-site.xml: expected <configuration> around everything, not <html>"
        );
        write(&site(&[]));
        read().unwrap();
    }
}
