//! Mutations of a corpus.

use crate::dice::Dice;

/// The longest input that a mutation makes.
const LONGEST: usize = 64 << 10;

/// Texts that parsers get wrong.
const ODD: &[&str] = &[
    "",
    "0",
    "-1",
    "-0",
    "00",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "0.1",
    "NaN",
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\"",
    "'",
    "`",
    "$",
    "${",
    "${}",
    "}",
    "{",
    "(",
    ")",
    ",",
    ":",
    ";",
    "/",
    "//",
    "..",
    "%",
    "%00",
    "%ff",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\u{a0}",
    "\u{202e}",
    "\u{feff}",
    "é",
    "ß",
    "İ",
    "ﬃ",
    "😀",
    "\u{10ffff}",
    "*",
    "?",
    "#",
    "@",
    "~",
    "+",
    "-",
    "_",
    "L",
    "W",
    "LW",
    "MON",
    "sun",
    "2026-02-30",
    "9999-12-31T23:59:59.999Z",
    "-9999-01-01T00:00Z",
    "T",
    "Z",
    "1h",
    "1y",
    "0s",
    "9999999999h",
    "<script>",
    "&amp;",
    "=",
    "&",
    "[[[[[[[[[[[[[[[[[[[[",
    "((((((((((((((((((((",
    "{\"a\":{\"a\":{\"a\":",
];

/// A mutation of one of the corpus.
pub(crate) fn mutated(corpus: &[Vec<u8>], words: &[&str], dice: &mut Dice) -> Vec<u8> {
    let mut input = dice.one_of(corpus).cloned().unwrap_or_default();
    for _ in 0..1 + dice.below(4) {
        mutate(&mut input, corpus, words, dice);
        input.truncate(LONGEST);
    }
    input
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], dice: &mut Dice) {
    let at = dice.below(input.len() + 1);
    match dice.below(10) {
        0 => flip(input, dice),
        1 => {
            let (start, end) = piece(input, dice);
            input.drain(start..end);
        }
        2 => insert(input, at, dice.one_of(ODD).copied().unwrap_or_default().as_bytes()),
        3 => insert(input, at, dice.one_of(words).copied().unwrap_or_default().as_bytes()),
        4 => {
            // A piece of it, repeated: depth and length.
            let (start, end) = piece(input, dice);
            let repeated = input.get(start..end).unwrap_or_default().repeat(1 + dice.below(20));
            insert(input, at, &repeated);
        }
        5 => {
            let other = dice.one_of(corpus).cloned().unwrap_or_default();
            let (start, end) = piece(&other, dice);
            insert(input, at, other.get(start..end).unwrap_or_default());
        }
        6 => replace(input, dice, u8::is_ascii_digit, |dice| {
            let count = 1 + dice.below(3);
            dice.next().to_string().into_bytes().into_iter().take(count).collect()
        }),
        7 => replace(input, dice, u8::is_ascii_alphanumeric, |dice| {
            let words = if words.is_empty() { ODD } else { words };
            dice.one_of(words).copied().unwrap_or_default().as_bytes().to_vec()
        }),
        8 => replace(input, dice, u8::is_ascii_digit, |dice| {
            dice.one_of(&ODD[..16]).copied().unwrap_or_default().as_bytes().to_vec()
        }),
        _ => replace(input, dice, u8::is_ascii_punctuation, |dice| {
            dice.one_of(ODD).copied().unwrap_or_default().as_bytes().to_vec()
        }),
    }
}

fn flip(input: &mut [u8], dice: &mut Dice) {
    let (at, bit) = (dice.below(input.len()), dice.below(8));
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let bytes = bytes.get(..LONGEST.min(bytes.len())).unwrap_or_default();
    input.splice(at..at, bytes.iter().copied());
}

/// The ends of a piece, mostly a short one.
fn piece(input: &[u8], dice: &mut Dice) -> (usize, usize) {
    let start = dice.below(input.len() + 1);
    let most = if dice.below(4) == 0 { input.len() } else { 12 };
    (start, (start + dice.below(most + 1)).min(input.len()))
}

/// Replaces a run of bytes of one kind, such as a number.
fn replace(input: &mut Vec<u8>, dice: &mut Dice, of_kind: fn(&u8) -> bool, with: impl Fn(&mut Dice) -> Vec<u8>) {
    let from = dice.below(input.len());
    let Some(start) = input.iter().skip(from).position(of_kind).map(|at| at + from) else { return };
    let end = input.iter().skip(start).position(|byte| !of_kind(byte)).map_or(input.len(), |at| at + start);
    let bytes = with(dice);
    input.splice(start..end, bytes);
}
