//! Server-sent events: the lines of a stream, taken together.

use std::io::BufRead;

/// The next event's data; none at the end of the stream. Comments, names and ids are passed over.
pub(crate) fn next(lines: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut data: Option<String> = None;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            // An event that is cut off is none.
            return Ok(None);
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            if data.is_some() {
                return Ok(data);
            }
        } else if let Some(part) = line.strip_prefix("data:") {
            let part = part.strip_prefix(' ').unwrap_or(part);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(part);
                }
                None => data = Some(part.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_at_empty_lines() {
        let mut lines = ": hello\n\nid: 7\nevent: slot\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\ndata: cut".as_bytes();
        assert_eq!(next(&mut lines).expect("a line"), Some("{\"a\":\n1}".to_owned()));
        assert_eq!(next(&mut lines).expect("a line"), Some("x".to_owned()));
        assert_eq!(next(&mut lines).expect("the end"), None);
    }
}
