//! Escapes of terminals: colours and styles are kept, everything else is dropped, and what hides or reorders text is made visible.

use anstyle_parse::{Params, Parser, Perform};

/// The look of text. Colours are of the 256 that terminals number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) ink: Option<u8>,
    pub(super) ground: Option<u8>,
    pub(super) bold: bool,
    pub(super) faint: bool,
    pub(super) italic: bool,
    pub(super) underlined: bool,
    pub(super) struck: bool,
    pub(super) inverse: bool,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text in one style.
    Text(Style, String),
    /// A character that would hide, move or reorder others.
    Sign(char),
}

/// The parts of a line, which begins in a style and leaves one for the next line. An escape that the line does not end is
/// dropped with the rest of the line, and no more.
pub(super) fn parts(line: &[u8], style: &mut Style) -> Vec<Part> {
    let mut screen = Screen { style: *style, parts: Vec::new() };
    let mut parser: Parser = Parser::default();
    // Text alone: single bytes beyond ASCII are controls to some terminals.
    for byte in String::from_utf8_lossy(line).bytes() {
        parser.advance(&mut screen, byte);
    }
    *style = screen.style;
    screen.parts
}

/// The text of a line, without escapes.
pub(super) fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if !text.contains('\u{1b}') {
        return text.into_owned();
    }
    let mut plain = String::new();
    for part in parts(line, &mut Style::default()) {
        match part {
            Part::Text(_, text) => plain.push_str(&text),
            Part::Sign(sign) => plain.push(sign),
        }
    }
    plain
}

struct Screen {
    style: Style,
    parts: Vec<Part>,
}

impl Screen {
    fn put(&mut self, c: char) {
        if hides(c) {
            self.parts.push(Part::Sign(c));
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(style, text)) if *style == self.style => text.push(c),
            _ => self.parts.push(Part::Text(self.style, c.to_string())),
        }
    }
}

/// Whether a character is a control, changes the direction of text, or takes no room.
fn hides(c: char) -> bool {
    let is_invisible = matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    is_invisible || (c.is_control() && c != '\t')
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        self.put(c);
    }

    fn execute(&mut self, byte: u8) {
        self.put(char::from(byte));
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if action == b'm' && intermediates.is_empty() && !ignore {
            let params: Vec<&[u16]> = params.iter().collect();
            self.style.select(&params);
        }
    }
}

impl Style {
    /// Select Graphic Rendition: each parameter changes the style, and some take others behind them.
    fn select(&mut self, params: &[&[u16]]) {
        let mut rest = params.iter().copied();
        while let Some(param) = rest.next() {
            match param {
                [38 | 48, sub @ ..] => {
                    let colour = if sub.is_empty() { colour_behind(&mut rest) } else { colour_within(sub) };
                    match (colour, param[0]) {
                        (Some(colour), 38) => self.ink = Some(colour),
                        (Some(colour), _) => self.ground = Some(colour),
                        (None, _) => {}
                    }
                }
                [58] => {
                    colour_behind(&mut rest);
                }
                [4, 0] => self.underlined = false,
                [code, ..] => self.change(*code),
                [] => {}
            }
        }
    }

    fn change(&mut self, code: u16) {
        let colour = |from: u16| u8::try_from(code - from).ok();
        match code {
            0 => *self = Style::default(),
            1 => self.bold = true,
            2 => self.faint = true,
            3 => self.italic = true,
            4 | 21 => self.underlined = true,
            7 => self.inverse = true,
            9 => self.struck = true,
            22 => (self.bold, self.faint) = (false, false),
            23 => self.italic = false,
            24 => self.underlined = false,
            27 => self.inverse = false,
            29 => self.struck = false,
            30..=37 => self.ink = colour(30),
            39 => self.ink = None,
            40..=47 => self.ground = colour(40),
            49 => self.ground = None,
            90..=97 => self.ink = colour(82),
            100..=107 => self.ground = colour(92),
            _ => {}
        }
    }
}

/// The colour of `38;5;n` and `38;2;r;g;b`, from the parameters behind.
fn colour_behind<'a>(rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<u8> {
    let mut next = || rest.next().and_then(|param| param.first()).copied();
    match next()? {
        5 => u8::try_from(next()?).ok(),
        2 => nearest([next()?, next()?, next()?]),
        _ => None,
    }
}

/// The colour of `38:5:n`, `38:2:r:g:b` and `38:2::r:g:b`, within one parameter.
fn colour_within(sub: &[u16]) -> Option<u8> {
    match *sub {
        [5, colour, ..] => u8::try_from(colour).ok(),
        [2, r, g, b] | [2, _, r, g, b, ..] => nearest([r, g, b]),
        _ => None,
    }
}

/// The one of 256 colours that is nearest: of the cube of 216, or of the 24 greys.
fn nearest(colour: [u16; 3]) -> Option<u8> {
    let colour = colour.map(|part| u8::try_from(part).ok().map(i32::from));
    let [Some(r), Some(g), Some(b)] = colour else { return None };
    let step = |part: i32| {
        if part < 48 {
            0
        } else if part < 115 {
            1
        } else {
            (part - 35) / 40
        }
    };
    let level = |step: i32| if step == 0 { 0 } else { 55 + 40 * step };
    let far = |other: [i32; 3]| -> i32 { [r, g, b].iter().zip(other).map(|(one, other)| (one - other).pow(2)).sum() };
    let steps = [r, g, b].map(step);
    let grey = (((r + g + b) / 3 - 3) / 10).clamp(0, 23);
    let is_grey = far([8 + 10 * grey; 3]) < far(steps.map(level));
    u8::try_from(if is_grey { 232 + grey } else { 16 + 36 * steps[0] + 6 * steps[1] + steps[2] }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Style {
        match parts(line.as_bytes(), &mut Style::default()).as_slice() {
            [Part::Text(style, text)] if text == "x" => *style,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn styles_are_kept() {
        assert_eq!(one("x"), Style::default());
        assert_eq!(one("\x1b[31mx"), Style { ink: Some(1), ..Style::default() });
        assert_eq!(
            one("\x1b[1;4;97;101mx"),
            Style { ink: Some(15), ground: Some(9), bold: true, underlined: true, ..Style::default() }
        );
        assert_eq!(one("\x1b[38;5;208mx").ink, Some(208));
        assert_eq!(one("\x1b[48:5:208mx").ground, Some(208));
        assert_eq!(one("\x1b[38;2;255;0;0mx").ink, Some(196));
        assert_eq!(one("\x1b[38:2::255:0:0mx").ink, Some(196));
        assert_eq!(one("\x1b[38;2;128;128;128mx").ink, Some(244));
        assert_eq!(one("\x1b[1;31m\x1b[mx"), Style::default());
        assert_eq!(one("\x1b[1;2;3;4;7;9m\x1b[22;23;24;27;29mx"), Style::default());
        assert!(one("\x1b[4:3mx").underlined);
        assert_eq!(one("\x1b[58;5;1;31mx"), Style { ink: Some(1), ..Style::default() }, "of an underline");
    }

    #[test]
    fn what_is_no_colour_changes_nothing() {
        for escape in ["38", "38;5", "38;5;256", "38;2;1;2", "38;2;1;2;999", "48", "999", "38:2:1"] {
            assert_eq!(one(&format!("\x1b[{escape}mx")), Style::default(), "{escape}");
        }
        let many = vec!["1"; 1000].join(";");
        assert_eq!(one(&format!("\x1b[{many}mx")).ink, None);
    }

    #[test]
    fn other_escapes_are_dropped_and_half_ones_end_with_their_line() {
        let text = |line: &str| plain(line.as_bytes());
        assert_eq!(text("a\x1b[2Jb\x1b]0;title\x07c\x1b[?25ld\x1b(0e\x1bPq#0\x1b\\f"), "abcdef");
        assert_eq!(text("a\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\b"), "alinkb");
        for half in ["a\x1b", "a\x1b[", "a\x1b[38;5", "a\x1b]0;never", "a\x1bPnever"] {
            assert_eq!(text(half), "a", "{half:?}");
        }
        let mut style = Style::default();
        parts(b"\x1b[31m\x1b]0;half", &mut style);
        assert_eq!(parts(b"next", &mut style), [Part::Text(Style { ink: Some(1), ..Style::default() }, "next".into())]);
    }

    #[test]
    fn what_hides_or_reorders_is_a_sign() {
        for c in [
            '\0',
            '\u{8}',
            '\r',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{feff}',
            '\u{2028}',
            '\u{e0041}',
        ] {
            let text = |text: &str| Part::Text(Style::default(), text.to_owned());
            let line = format!("a{c}b");
            assert_eq!(parts(line.as_bytes(), &mut Style::default()), [text("a"), Part::Sign(c), text("b")], "{c:?}");
        }
        assert_eq!(plain("\tא ü 日 👩\u{200d}💻".as_bytes()), "\tא ü 日 👩\u{200d}💻");
    }

    #[test]
    fn any_bytes_give_text() {
        let text = |parts: Vec<Part>| -> usize {
            parts.iter().map(|part| if let Part::Text(_, text) = part { text.len() } else { 1 }).sum()
        };
        // Cut characters, and characters within escapes.
        assert_eq!(plain(b"caf\xc3"), "caf\u{fffd}");
        assert_eq!(plain(b"\xff\x9b31mx"), "\u{fffd}\u{fffd}31mx");
        let mut seed = 7_u32;
        for _ in 0..2000 {
            let line: Vec<u8> = (0..60)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let byte = (seed >> 24) as u8;
                    if byte < 60 { b"\x1b[]m;:38P\\"[usize::from(byte % 10)] } else { byte }
                })
                .collect();
            assert!(text(parts(&line, &mut Style::default())) <= line.len() * 3);
        }
        let long = "x".repeat(1 << 20);
        assert_eq!(text(parts(long.as_bytes(), &mut Style::default())), 1 << 20);
    }
}
