//! How results are printed as JSON.

/// When JSON is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// When all is done.
    Document,
    /// As they come.
    Stream,
}

impl Json {
    /// What `--json` and `--json-stream` ask for.
    pub(crate) const fn asked(document: bool, stream: bool) -> Option<Self> {
        match (document, stream) {
            (_, true) => Some(Self::Stream),
            (true, false) => Some(Self::Document),
            (false, false) => None,
        }
    }
}
