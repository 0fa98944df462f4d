//! What came of tests in the XML that CI servers read.

use std::io;

use kelos_rehearsal::Verdict;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::print::details;
use super::{FileOutcome, TestOutcome, Totals};

type Xml = Writer<Vec<u8>>;

/// The report of all files: a suite for each.
pub(super) fn report(files: &[FileOutcome]) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let mut all = BytesStart::new("testsuites");
    all.push_attribute(("name", "kelos"));
    counts(&mut all, files);
    xml.write_event(Event::Start(all))?;
    for file in files {
        suite(&mut xml, file)?;
    }
    xml.write_event(Event::End(BytesEnd::new("testsuites")))?;
    let mut report = xml.into_inner();
    report.push(b'\n');
    Ok(report)
}

fn counts(element: &mut BytesStart<'_>, files: &[FileOutcome]) {
    let totals = Totals::of(files);
    let tests = totals.passed + totals.failed + totals.broken + totals.skipped;
    let numbers =
        [("tests", tests), ("failures", totals.failed), ("errors", totals.broken), ("skipped", totals.skipped)];
    for (name, number) in numbers {
        element.push_attribute((name, number.to_string().as_str()));
    }
    let took: f64 = files.iter().flat_map(|file| &file.tests).map(|test| test.took.as_secs_f64()).sum();
    element.push_attribute(("time", seconds(took).as_str()));
}

fn seconds(time: f64) -> String {
    format!("{time:.3}")
}

fn suite(xml: &mut Xml, file: &FileOutcome) -> io::Result<()> {
    let mut element = BytesStart::new("testsuite");
    element.push_attribute(("name", printable(&file.label).as_str()));
    counts(&mut element, std::slice::from_ref(file));
    xml.write_event(Event::Start(element))?;
    if file.is_broken() {
        let words: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        xml.write_event(Event::Start(case(&file.label, "the file", 0, 0.0)))?;
        complaint(xml, "error", "broken", &words)?;
        xml.write_event(Event::End(BytesEnd::new("testcase")))?;
    }
    for test in &file.tests {
        test_case(xml, &file.label, test)?;
    }
    xml.write_event(Event::End(BytesEnd::new("testsuite")))
}

fn case(file: &str, name: &str, line: u32, time: f64) -> BytesStart<'static> {
    let mut case = BytesStart::new("testcase");
    let (file, name) = (printable(file), printable(name));
    case.push_attribute(("name", name.as_str()));
    case.push_attribute(("classname", file.as_str()));
    case.push_attribute(("file", file.as_str()));
    if line > 0 {
        case.push_attribute(("line", line.to_string().as_str()));
    }
    case.push_attribute(("time", seconds(time).as_str()));
    case
}

fn test_case(xml: &mut Xml, label: &str, test: &TestOutcome) -> io::Result<()> {
    let case = case(label, &test.name, test.line, test.took.as_secs_f64());
    let kind = match &test.report.verdict {
        Verdict::Passed => return xml.write_event(Event::Empty(case)),
        verdict => verdict,
    };
    xml.write_event(Event::Start(case))?;
    match kind {
        Verdict::Skipped(why) => {
            let mut skipped = BytesStart::new("skipped");
            skipped.push_attribute(("message", printable(why).as_str()));
            xml.write_event(Event::Empty(skipped))?;
        }
        Verdict::Broken(_) => complaint(xml, "error", "broken", &details(label, test))?,
        _ => complaint(xml, "failure", "mismatch", &details(label, test))?,
    }
    xml.write_event(Event::End(BytesEnd::new("testcase")))
}

/// A failure or an error: its first words as the message, all of them as the text.
fn complaint(xml: &mut Xml, element: &str, kind: &str, words: &[String]) -> io::Result<()> {
    let place = |line: &&String| !line.contains(": ");
    let message = words.iter().find(|line| !place(line)).or(words.first());
    let mut start = BytesStart::new(element.to_owned());
    start.push_attribute(("type", kind));
    start.push_attribute(("message", message.map(|line| printable(line)).unwrap_or_default().as_str()));
    xml.write_event(Event::Start(start))?;
    xml.write_event(Event::Text(BytesText::new(&printable(&words.join("\n")))))?;
    xml.write_event(Event::End(BytesEnd::new(element.to_owned())))
}

/// Without the characters that XML can't hold.
fn printable(text: &str) -> String {
    let fits = |c: &char| matches!(c, '\t' | '\n' | '\r') || (*c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().filter(fits).collect()
}
