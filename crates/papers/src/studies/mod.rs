//! The papers that can be repeated, a folder each.

mod a3;
mod acwap;
mod dclor;
pub mod kalampoukas;
mod ls_aimd;

use crate::study::Study;

/// All studies, in the order in which they are listed.
pub const STUDIES: &[&dyn Study] =
    &[&a3::A3, &kalampoukas::Kalampoukas, &acwap::Acwap, &ls_aimd::LsAimd, &dclor::Dclor];
