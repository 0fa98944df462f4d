use jiff::Timestamp;

use super::*;

fn line(bytes: &[u8], stream: Option<Stream>) -> LogLine {
    let at = stream.map(|_| Timestamp::from_millisecond(1_763_900_000_123).unwrap());
    LogLine { offset: 7, at, stream, bytes: bytes.to_vec(), whole: true }
}

fn html_of(bytes: &[u8]) -> String {
    let shown = row(&line(bytes, Some(Stream::Stdout)), &mut Style::default(), None).into_string();
    let from = shown.find('>').unwrap() + 1;
    shown[from..].strip_suffix("\n</span>").unwrap().to_owned()
}

#[test]
fn a_line_has_its_time_and_stream_beside_its_text() {
    let shown = |stream| row(&line(b"text", stream), &mut Style::default(), None).into_string();
    assert_eq!(
        shown(Some(Stream::Stderr)),
        "<span class=\"row err\" data-offset=\"7\" data-at=\"12:13:20.123\" \
         title=\"2025-11-23T12:13:20.123Z, standard error\">text\n</span>"
    );
    assert_eq!(
        shown(None),
        "<span class=\"row\" data-offset=\"7\" title=\"its time and stream were not kept\">text\n</span>"
    );
    let error = row(&line(b"text", Some(Stream::Stdout)), &mut Style::default(), Some(7)).into_string();
    assert!(error.contains("id=\"first-error\""), "{error}");
}

#[test]
fn colours_are_classes() {
    assert_eq!(html_of(b"a \x1b[1;31mred\x1b[0m b"), "a <span class=\"f1 bold\">red</span> b");
    assert_eq!(html_of(b"\x1b[93;44mx"), "<span class=\"b4\">x</span>", "black or white on a ground");
    assert_eq!(html_of(b"\x1b[7mx\x1b[31my"), "<span class=\"inverse\">x</span><span class=\"b1\">y</span>");
    assert_eq!(html_of(b"\x1b[4;9;38;5;208mx"), "<span class=\"f208 both-lines\">x</span>");
}

#[test]
fn nothing_in_a_line_becomes_a_part_of_the_page() {
    assert_eq!(html_of(b"<script>alert(1)</script>&\"'"), "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'");
    assert_eq!(html_of(b"\x1b[\"><b>x"), "&gt;x", "what ends an escape is dropped with it");
    assert_eq!(html_of(b"\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\"), "link");
    assert_eq!(
        html_of("safe\u{202e}exe.txt".as_bytes()),
        "safe<span class=\"sign\" title=\"U+202E\">U+202E</span>exe.txt"
    );
    assert_eq!(html_of(b"10 %\r20 %"), "10 %<span class=\"sign\" title=\"U+000D\">␍</span>\n20 %");
    assert_eq!(html_of(b"\0"), "<span class=\"sign\" title=\"U+0000\">␀</span>");
    // No byte may end an event of a stream.
    assert!(!html_of(b"a\rb\r\rc").contains('\r'));
}

/// How far apart the lightness of two colours is, by the rule of WCAG.
fn contrast(one: &str, other: &str) -> f64 {
    let part = |colour: &str, from: usize| {
        let part = f64::from(u8::from_str_radix(&colour[from..from + 2], 16).unwrap()) / 255.0;
        if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let light = |colour: &str| 0.2126 * part(colour, 1) + 0.7152 * part(colour, 3) + 0.0722 * part(colour, 5);
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn every_colour_can_be_read_in_both_themes() {
    let css = include_str!("../assets/ansi.css");
    let grounds = include_str!("../assets/kelos.css").split("--raised: light-dark(").nth(1).unwrap();
    let grounds: Vec<&str> = grounds[..grounds.find(')').unwrap()].split(", ").collect();
    let rule = |class: String| -> Vec<&str> {
        let start = css.find(&format!(".{class} {{")).unwrap_or_else(|| panic!("no rule for {class}"));
        let rule = &css[start..start + css[start..].find('}').unwrap()];
        rule.match_indices('#').map(|(at, _)| &rule[at..at + 7]).collect()
    };
    for colour in 0..=255 {
        let ink = rule(format!("f{colour}"));
        for (ink, ground) in ink.iter().zip(&grounds) {
            assert!(contrast(ink, ground) >= 4.5, "f{colour}: {ink} on {ground}");
        }
        let ground = rule(format!("b{colour}"));
        assert!(contrast(ground[0], ground[1]) >= 4.5, "b{colour}: {ground:?}");
    }
}

#[test]
fn parts_of_an_output_have_names() {
    assert_eq!(From::read(None), Some(From::End));
    assert_eq!(From::read(Some("")), Some(From::End));
    assert_eq!(From::read(Some("error")), Some(From::Error));
    assert_eq!(From::read(Some("12")), Some(From::Offset(12)));
    assert_eq!(From::read(Some("before-12")), Some(From::Before(12)));
    assert_eq!(["-1", "before-", "before", "error "].map(|text| From::read(Some(text))), [None; 4]);
}
