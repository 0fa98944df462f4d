//! Masks by value: what a job says is shown without the secrets that it was given.
//!
//! Each value is hidden as it is, in base64 wherever it stands in what was encoded, escaped for URLs and for JSON, and, if
//! it has several lines, line by line. Against an author who has a job print its secret backwards there is no mask.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use kelos_model::secret::MASK;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::read::SHORTEST_SECRET;

/// A line of a secret that is shorter is too usual to be hidden on its own.
const SHORTEST_LINE: usize = 8;

/// The most bytes of patterns for which there is the faster, larger machine.
const SMALL: usize = 16 << 10;

/// The letters that most programs escape in a part of a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The letters that `encodeURIComponent` escapes.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// Hides values. Cheap to clone.
#[derive(Clone, Default)]
pub struct Mask {
    patterns: Option<Arc<Patterns>>,
}

/// All forms of all values.
struct Patterns {
    search: AhoCorasick,
    all: Vec<Vec<u8>>,
    longest: usize,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask")
            .field("patterns", &self.patterns.as_ref().map_or(0, |patterns| patterns.all.len()))
            .finish()
    }
}

impl Mask {
    /// The mask of these values.
    #[must_use]
    pub fn of(values: &[String]) -> Mask {
        let forms: BTreeSet<Vec<u8>> =
            values.iter().flat_map(|value| forms(value)).filter(|form| form.len() >= SHORTEST_SECRET).collect();
        let all: Vec<Vec<u8>> = forms.into_iter().collect();
        let (longest, total) = (all.iter().map(Vec::len).max().unwrap_or(0), all.iter().map(Vec::len).sum::<usize>());
        let kind = if total <= SMALL { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        // It fails only for more patterns than memory has room for.
        let search = AhoCorasick::builder().kind(Some(kind)).build(&all).ok().filter(|_| !all.is_empty());
        Mask { patterns: search.map(|search| Arc::new(Patterns { search, all, longest })) }
    }

    /// Whether it hides nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// A text without the values.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut stream = self.stream();
        let mut shown = stream.push(text.as_bytes());
        shown.extend(stream.finish());
        String::from_utf8(shown).unwrap_or_else(|shown| String::from_utf8_lossy(shown.as_bytes()).into_owned())
    }

    /// Data without the values, in texts and in names.
    #[must_use]
    pub fn data(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.data(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (self.text(name), self.data(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// A mask for bytes that come in pieces.
    #[must_use]
    pub fn stream(&self) -> MaskStream {
        MaskStream { mask: self.clone(), held: Vec::new(), covered: 0 }
    }
}

/// Hides values in bytes that come in pieces, wherever these are cut: what may be the beginning of a value is held back until it
/// is known.
#[derive(Debug)]
pub struct MaskStream {
    mask: Mask,
    held: Vec<u8>,
    /// So many of the bytes that are held back belong to a value whose mask was shown.
    covered: usize,
}

impl MaskStream {
    /// The bytes that can be shown after these have come.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(patterns) = self.mask.patterns.clone() else { return bytes.to_vec() };
        self.held.extend_from_slice(bytes);
        let known = self.held.len() - patterns.begun(&self.held);
        self.show(&patterns, known)
    }

    /// The rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let Some(patterns) = self.mask.patterns.clone() else { return Vec::new() };
        self.show(&patterns, self.held.len())
    }

    /// Takes the first bytes, of which no value is unknown that begins in them.
    fn show(&mut self, patterns: &Patterns, known: usize) -> Vec<u8> {
        let mut regions: Vec<(usize, usize)> =
            patterns.search.find_overlapping_iter(&self.held).map(|found| (found.start(), found.end())).collect();
        regions.sort_unstable();
        let mut shown = Vec::with_capacity(known);
        let mut hidden = self.covered;
        for (start, end) in regions.into_iter().take_while(|(start, _)| *start < known) {
            if start >= hidden {
                shown.extend_from_slice(&self.held[hidden..start]);
                shown.extend_from_slice(MASK.as_bytes());
            }
            hidden = hidden.max(end);
        }
        if hidden < known {
            shown.extend_from_slice(&self.held[hidden..known]);
        }
        self.covered = hidden.saturating_sub(known);
        self.held.drain(..known);
        shown
    }
}

impl Patterns {
    /// How many of the last bytes may be the beginning of a pattern.
    fn begun(&self, bytes: &[u8]) -> usize {
        let most = self.longest.saturating_sub(1).min(bytes.len());
        let is_begun = |len: &usize| {
            let end = &bytes[bytes.len() - len..];
            self.all.iter().any(|pattern| pattern.len() > *len && pattern.starts_with(end))
        };
        (1..=most).rev().find(is_begun).unwrap_or(0)
    }
}

/// A value as it may stand in an output.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    if value.contains('\n') {
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
        forms.extend(lines.map(|line| line.as_bytes().to_vec()));
    }
    forms.extend(in_base64(value.as_bytes()));
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT] {
        let escaped = utf8_percent_encode(value, set).to_string();
        forms.push(lower_escapes(&escaped).into_bytes());
        forms.push(escaped.replace("%20", "+").into_bytes());
        forms.push(escaped.into_bytes());
    }
    let json = Value::from(value).to_string();
    forms.push(json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).as_bytes().to_vec());
    forms
}

/// The letters of base64 that a value decides alone, at each of the three places where it may begin in what is encoded.
fn in_base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&vec![0; before], value].concat();
        // Six bits for a letter; the first and the last may belong to a neighbour, too.
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for engine in [&STANDARD, &URL_SAFE] {
            let letters = engine.encode(&bytes).into_bytes();
            forms.extend(letters.get(first..end).map(<[u8]>::to_vec));
        }
    }
    forms
}

/// `%2F` as `%2f`.
fn lower_escapes(escaped: &str) -> String {
    let mut pieces = escaped.split('%');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |lower, piece| {
        let (code, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        lower + "%" + &code.to_ascii_lowercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use kelos_model::retry::scramble;

    use super::*;

    fn mask(values: &[&str]) -> Mask {
        Mask::of(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    /// Masks bytes in pieces of these lengths, again and again.
    fn in_pieces(mask: &Mask, bytes: &[u8], lengths: &[usize]) -> String {
        let (mut stream, mut rest, mut shown) = (mask.stream(), bytes, Vec::new());
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            shown.extend(stream.push(piece));
            rest = after;
        }
        shown.extend(stream.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_value_is_hidden_wherever_it_is_cut() {
        let mask = mask(&["hunter2"]);
        let text = "login hunter2, hunter2hunter2; hunter, hunter";
        let shown = "login ••••••, ••••••••••••; hunter, hunter";
        for cut in 1..text.len() {
            assert_eq!(in_pieces(&mask, text.as_bytes(), &[cut, text.len()]), shown, "cut at {cut}");
        }
        assert_eq!(in_pieces(&mask, text.as_bytes(), &[1]), shown);
    }

    #[test]
    fn nothing_is_held_back_that_can_be_no_value() {
        let mask = mask(&["hunter2"]);
        let mut stream = mask.stream();
        assert_eq!(stream.push(b"Password: "), b"Password: ");
        assert_eq!(stream.push(b"oh hunt"), b"oh ");
        assert_eq!(stream.push(b"ing"), b"hunting");
        assert_eq!(stream.finish(), b"");
    }

    #[test]
    fn values_that_overlap_are_hidden_whole() {
        let mask = mask(&["abcdef", "defghi", "cdef"]);
        for lengths in [&[1][..], &[2], &[3], &[4, 1], &[100]] {
            assert_eq!(in_pieces(&mask, b"-abcdefghi-cdefghi-abcde-", lengths), "-••••••-••••••-abcde-");
        }
    }

    #[test]
    fn pieces_make_no_difference() {
        let values = ["aabab", "abaaba", "bbbbb", "aaaa"];
        let mask = mask(&values);
        for seed in 0..300_u64 {
            let bytes: Vec<u8> = (0..200).map(|n| b'a' + (scramble(seed * 1000 + n) % 2) as u8).collect();
            let whole = mask.text(std::str::from_utf8(&bytes).unwrap());
            let lengths: Vec<usize> = (0..7).map(|n| 1 + (scramble(seed * 77 + n) % 9) as usize).collect();
            assert_eq!(in_pieces(&mask, &bytes, &lengths), whole, "seed {seed}");
            assert!(values.iter().all(|value| !whole.contains(value)), "seed {seed}: {whole}");
        }
    }

    #[test]
    fn a_long_run_of_one_letter_needs_no_room() {
        let mask = mask(&["aaaaaaaa"]);
        let mut stream = mask.stream();
        let mut shown = Vec::new();
        for _ in 0..1000 {
            shown.extend(stream.push(&[b'a'; 1000]));
            assert!(stream.held.len() < 100, "{}", stream.held.len());
        }
        shown.extend(stream.finish());
        assert_eq!(String::from_utf8(shown).unwrap(), MASK);
    }

    #[test]
    fn other_forms_are_hidden_too() {
        let secret = "p@ss w\"ord/+é";
        let mask = mask(&[secret]);
        let hides = |text: &str| {
            let shown = mask.text(text);
            assert!(shown.contains(MASK), "{text} -> {shown}");
            shown
        };
        for before in ["", "u", "us", "user", "user:"] {
            for after in ["", "x", "xy"] {
                for engine in [&STANDARD, &URL_SAFE] {
                    let shown = hides(&engine.encode(format!("{before}{secret}{after}")));
                    // The rest has less than a letter of the value at either end.
                    assert!(shown.replace(MASK, "").len() <= before.len() * 2 + after.len() * 2 + 6, "{shown}");
                }
            }
        }
        hides("https://h/?q=p%40ss%20w%22ord%2F%2B%C3%A9&x");
        hides("https://h/?q=p%40ss+w%22ord%2f%2b%c3%a9".replace("+w", "%20w").as_str());
        hides("q=p%40ss+w%22ord%2F%2B%C3%A9");
        hides(&Value::from(format!("{{{secret}}}")).to_string());
    }

    #[test]
    fn lines_of_a_key_are_hidden_one_by_one() {
        let mask = mask(&["-----BEGIN KEY-----\nMIIEvQIBADANBg\nabc\n-----END KEY-----"]);
        assert_eq!(mask.text("line: MIIEvQIBADANBg\r\nabc\n"), "line: ••••••\r\nabc\n");
    }

    #[test]
    fn without_values_nothing_changes() {
        let none = Mask::default();
        assert!(none.is_empty() && Mask::of(&[]).is_empty());
        assert_eq!(none.stream().push(b"abc"), b"abc");
        assert_eq!(
            mask(&["hunter2"]).data(&serde_json::json!({"hunter2": ["x hunter2", 7]})),
            serde_json::json!({MASK: ["x ••••••", 7]})
        );
    }

    /// Prints how fast output is masked; run with `--release -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement: cargo test --release -p kelos-engine -- --ignored --nocapture a_hundred"]
    fn a_hundred_megabytes_go_through() {
        let line = b"2026-11-26T05:00:00Z INFO loaded 4711 rows into warehouse.orders, hunter 12 ms\n";
        let piece: Vec<u8> = line.iter().copied().cycle().take(64 << 10).collect();
        for (what, mask) in [
            ("1 short value", mask(&["hunter2-and-more"])),
            ("20 values", Mask::of(&(0..20).map(|n| format!("value-{n}-{}", scramble(n))).collect::<Vec<_>>())),
            ("a value of 64 KiB", Mask::of(&[(0..6000_u64).map(|n| format!("{:x}", scramble(n))).collect::<String>()])),
        ] {
            let (mut stream, begun, mut bytes) = (mask.stream(), std::time::Instant::now(), 0);
            for _ in 0..1600 {
                bytes += stream.push(&piece).len();
            }
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{what}: {:.0} MB in {seconds:.2} s, {:.0} MB/s",
                bytes as f64 / 1e6,
                bytes as f64 / 1e6 / seconds
            );
        }
    }
}
