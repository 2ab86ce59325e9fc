//! The papers that can be repeated.

use super::error::ReproduceError;
use super::studies::{LIVE, STUDIES};
use super::study::Study;
use ackline_tcp_core::policy::spec::nearest;

/// The study called `name`.
///
/// # Errors
/// If there is none; says which there are.
pub fn study(name: &str) -> Result<&'static dyn Study, ReproduceError> {
    find(STUDIES, name, |study| study.paper().name)
}

/// The live part of the paper called `name`.
///
/// # Errors
/// If there is none; says which papers have one.
pub fn live_study(name: &str) -> Result<&'static dyn Study, ReproduceError> {
    find(LIVE, name, |study| study.paper().name.trim_end_matches(" --live"))
}

fn find(
    studies: &[&'static dyn Study],
    name: &str,
    of: fn(&&'static dyn Study) -> &'static str,
) -> Result<&'static dyn Study, ReproduceError> {
    let names = || studies.iter().map(of);
    studies.iter().find(|study| of(study) == name).copied().ok_or_else(|| {
        let near = nearest(name, names().chain(["all"]))
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        ReproduceError::Request(format!(
            "there is no paper {name:?}{near} (there are {all}; all for every one)"
        ))
    })
}
