//! The papers that can be repeated.

use super::error::ReproduceError;
use super::study::Study;
use super::{a3, acwap, dclor, kalampoukas, ls_aimd};
use ackline_tcp_core::policy::spec::nearest;

/// All studies, in the order in which they are listed.
pub const STUDIES: &[&dyn Study] =
    &[&a3::A3, &kalampoukas::Kalampoukas, &acwap::Acwap, &ls_aimd::LsAimd, &dclor::Dclor];

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
