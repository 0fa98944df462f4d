//! Problems of fields that nothing reads, each where its field stands.

use crate::code::ProblemCode;
use crate::desk::Desk;
use crate::fault;
use crate::flows::{keys_at, position};
use crate::problem::{Problem, Severity, SourcePosition};

impl Desk {
    /// Reports a field of an object that a script gave to a call: where the field stands in it, or else at the call.
    pub(crate) fn report_field(
        &self,
        severity: Severity,
        code: ProblemCode,
        message: String,
        stack: &str,
        field: &str,
    ) {
        let problem = Problem { severity, ..Problem::error(&self.file, code, message) };
        let mut problem = fault::at_stack(problem, stack, &|file| self.source(file));
        let place = self.source(&problem.file).and_then(|source| {
            let call = SourcePosition { file: problem.file.clone(), line: problem.line, column: problem.column };
            place_of_field(&source, &call, field)
        });
        if let Some(place) = place {
            fault::locate(&mut problem, &[place], &|file| self.source(file));
        }
        self.note(problem);
    }
}

/// The place of a field in the call that stands at a place.
fn place_of_field(source: &str, call: &SourcePosition, field: &str) -> Option<SourcePosition> {
    let before = usize::try_from(call.line).ok()?.checked_sub(1)?;
    let line: usize = source.split_inclusive('\n').take(before).map(str::len).sum();
    let skipped = usize::try_from(call.column).ok()?.saturating_sub(1);
    let column: usize = source.get(line..)?.chars().take(skipped).map(char::len_utf8).sum();
    let text = source.get(line + column..)?;
    let within = text.get(..length_of_call(text))?;
    position(source, line + column + keys_at(within, field).next()?, &call.file)
}

/// The length of the call that a text begins with; the whole text where it does not end.
fn length_of_call(text: &str) -> usize {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) => quote = (letter != open).then_some(open),
            (None, '"' | '\'' | '`') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') if depth <= 1 => return at,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_told_where_it_stands_in_its_call() {
        let source = "let odd = {owner: 1};\nkelos.workflow(\"a\", {\n    shell: \"(owner: )\", retry: {cuont: 3},\n    'owner': 2\n});\nkelos.workflow(\"b\", {tagz: []});\n";
        let call = |line| SourcePosition { file: "a.js".to_owned(), line, column: 1 };
        let place = |line, field| place_of_field(source, &call(line), field).map(|place| (place.line, place.column));
        assert_eq!(place(2, "cuont"), Some((3, 33)));
        assert_eq!(place(2, "tagz"), None, "it is of another call");
        assert_eq!(place(6, "tagz"), Some((6, 22)));
        assert_eq!(place(6, "owner"), None);
    }
}
