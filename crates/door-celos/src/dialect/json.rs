//! JSON as Jackson's default pretty printer writes it, because clients of Celos compare texts.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Two spaces of indentation for objects, `"key" : value`, arrays on the line of their bracket, no final
/// line break.
#[derive(Default)]
struct Jackson {
    depth: usize,
    /// Whether the object that ends next has any field.
    filled: bool,
}

impl Jackson {
    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Jackson {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b" " } else { b", " })
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" ]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.filled {
            self.line(writer)?;
        } else {
            writer.write_all(b" ")?;
        }
        // The enclosing object has a field; `end_object_value` is called only in objects.
        self.filled = true;
        writer.write_all(b"}")
    }
}

/// Writes a value.
pub(super) fn print(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Jackson::default());
    match value.serialize(&mut serializer) {
        Ok(()) => text,
        // Only maps whose keys are no texts can fail, and there are none here.
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn printed(value: &Value) -> String {
        String::from_utf8(super::print(value)).unwrap()
    }

    #[test]
    fn scalars_and_arrays_of_them_stay_on_one_line() {
        let ids = json!({ "ids": ["workflow-1", "workflow-2"] });
        assert_eq!(printed(&ids), "{\n  \"ids\" : [ \"workflow-1\", \"workflow-2\" ]\n}");
        assert_eq!(printed(&json!([1, 2.5, null, true, [[3]]])), "[ 1, 2.5, null, true, [ [ 3 ] ] ]");
        assert_eq!(printed(&json!("Iñtërnâtiônàlizætiøn \"quoted\"")), "\"Iñtërnâtiônàlizætiøn \\\"quoted\\\"\"");
    }

    #[test]
    fn empty_ones_have_one_space() {
        assert_eq!(printed(&json!({ "a": [], "b": {} })), "{\n  \"a\" : [ ],\n  \"b\" : { }\n}");
        assert_eq!(printed(&json!({})), "{ }");
        assert_eq!(printed(&json!([{}, []])), "[ { }, [ ] ]");
    }

    #[test]
    fn objects_in_arrays_are_indented_by_their_depth_in_objects() {
        let value = json!({ "slots": [{ "a": 1, "deep": [{ "b": 2 }] }, { "c": null }] });
        let expected = "{\n  \"slots\" : [ {\n    \"a\" : 1,\n    \"deep\" : [ {\n      \"b\" : 2\n    } ]\n  }, {\n    \"c\" : null\n  } ]\n}";
        assert_eq!(printed(&value), expected);
    }
}
