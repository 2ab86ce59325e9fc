//! The papers that can be repeated.

use super::error::ReproduceError;
use super::studies::STUDIES;
use super::study::Study;
use ackline_tcp_core::policy::spec::nearest;

/// The study called `name`.
///
/// # Errors
/// If there is none; says which there are.
pub fn study(name: &str) -> Result<&'static dyn Study, ReproduceError> {
    let names = || STUDIES.iter().map(|study| study.paper().name);
    STUDIES.iter().find(|study| study.paper().name == name).copied().ok_or_else(|| {
        let near = nearest(name, names().chain(["all"]))
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        ReproduceError::Request(format!(
            "there is no paper {name:?}{near} (there are {all}; all for every one)"
        ))
    })
}
