//! A request to a study: its parts, and how much of them.

/// An option that a study may have beyond its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// `--quick`: a smaller version that takes seconds or minutes, with every main claim of the
    /// paper in it.
    Quick,
    /// `--seeds N`: N runs with different seeds if the paper gives means.
    Seeds,
    /// `--scale X`: the paper's durations or volumes times X.
    Scale,
}

impl Knob {
    /// The option on the command line.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Quick => "--quick",
            Self::Seeds => "--seeds",
            Self::Scale => "--scale",
        }
    }
}

/// A request, checked against what the study has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Chosen parts, in the study's order; never empty if the engine made it.
    pub parts: Vec<&'static str>,
    /// The smaller version.
    pub quick: bool,
    /// Seeds per point, if the study's own number is not wanted.
    pub seeds: Option<u32>,
    /// Factor on durations or volumes, if the study's own are not wanted.
    pub scale: Option<f64>,
}

impl Request {
    /// True if the part is wanted.
    #[must_use]
    pub fn wants(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }
}
