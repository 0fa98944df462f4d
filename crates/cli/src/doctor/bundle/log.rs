//! The end of the server's log: of each line the time, the level, the origin and the message.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::redaction::Redaction;

/// Lines that are kept.
const LINES: usize = 500;
/// Bytes of the file that are read for them.
const BYTES: u64 = 4 << 20;

/// The last lines of the newest daily log of a folder; none without a log.
pub(super) fn end_of(folder: &Path, redaction: &Redaction) -> Option<String> {
    let text = tail(&newest(folder)?).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let kept = lines.iter().skip(lines.len().saturating_sub(LINES)).map(|line| shown(line, redaction));
    Some(kept.map(|line| line.to_string() + "\n").collect())
}

/// The newest `kelos.2026-01-31.log`, whose names sort by day.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("kelos.") && name.ends_with(".log")
    };
    entries.filter(is_log).max()
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line by an allow-list: its other fields may have anything in them.
fn shown(line: &str, redaction: &Redaction) -> Value {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) else {
        return json!({ "leftOut": "a line that is no JSON" });
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let masked = |name: &str| text(name).map(|text| redaction.masked(text));
    json!({
        "timestamp": masked("timestamp"),
        "level": masked("level"),
        "target": masked("target"),
        "message": text("message").map(|message| redaction.message(message)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_newest_log_is_kept_without_further_fields() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(end_of(folder.path(), &Redaction::default()), None);
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("kelos.2026-01-30.log", "{\"message\":\"old\"}\n");
        write("other.log", "{\"message\":\"other\"}\n");
        let first = "{\"message\":\"gone\"}\n".to_owned();
        let line = r#"{"timestamp":"t","level":"WARN","target":"kelos","message":"failed to read \"pw\"","env":"pw"}"#;
        write("kelos.2026-01-31.log", &(first + &format!("{line}\n").repeat(LINES - 1) + "pw\n"));
        let kept = end_of(folder.path(), &Redaction::default()).expect("lines");
        let lines: Vec<&str> = kept.lines().collect();
        assert_eq!(lines.len(), LINES);
        assert_eq!(
            lines[0],
            r#"{"timestamp":"t","level":"WARN","target":"kelos","message":"failed to read \"…\""}"#.to_owned()
        );
        assert!(!kept.contains("pw") && lines[LINES - 1].contains("a line that is no JSON"), "{kept}");
    }
}
