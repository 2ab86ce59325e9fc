//! Tables that have places in a document, where new ones replace them.

use std::fmt::Write as _;

/// A table with the name that its place in a document has.
pub(crate) struct Section {
    /// Of its place.
    pub(crate) name: &'static str,
    /// For reading outside a document.
    pub(crate) title: &'static str,
    pub(crate) text: String,
}

/// For reading.
pub(crate) fn plain(sections: &[Section]) -> String {
    let mut out = String::new();
    for Section { title, text, .. } in sections {
        // Writing to a string does not fail.
        let _ = writeln!(out, "## {title}\n\n{text}");
    }
    out
}

/// For copying, with the marks of the places.
pub(crate) fn marked(sections: &[Section]) -> String {
    let mut out = String::new();
    for Section { name, text, .. } in sections {
        let _ = writeln!(out, "{}\n{text}{}\n", begin(name), end(name));
    }
    out
}

/// A document with the sections at their places. Places of other sections stay as they are.
///
/// # Errors
/// If a section has no place, or a place has no end.
pub(crate) fn update(document: &str, sections: &[Section]) -> Result<String, String> {
    let mut out = document.to_owned();
    for Section { name, text, .. } in sections {
        let (begin, end) = (begin(name), end(name));
        let start = out.find(&begin).ok_or_else(|| format!("no line {begin}"))? + begin.len();
        let length = out[start..].find(&end).ok_or_else(|| format!("no line {end} after {begin}"))?;
        out.replace_range(start..start + length, &format!("\n{text}"));
    }
    Ok(out)
}

fn begin(name: &str) -> String {
    format!("<!-- compare:begin {name} -->")
}

fn end(name: &str) -> String {
    format!("<!-- compare:end {name} -->")
}
