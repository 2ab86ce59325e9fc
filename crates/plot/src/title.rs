//! Titles of figures, and what they say if a figure is not to be believed.

/// A title that says why the results are not those of the scenario.
#[must_use]
pub fn marked(title: &str, why: &str) -> String {
    format!("{title} {MARK}{why}").trim_start().to_owned()
}

/// Begins what says why not to believe a figure.
const MARK: &str = "INVALID: ";

/// What stands over a figure: its title, or, if that is left to the caption, only why not to
/// believe it.
pub(super) fn heading(title: &str, untitled: bool) -> &str {
    if !untitled {
        return title;
    }
    title.find(MARK).and_then(|at| title.get(at..)).unwrap_or_default()
}
