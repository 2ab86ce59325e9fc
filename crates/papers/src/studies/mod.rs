//! The papers that can be repeated, a folder each.

mod a3;
mod acwap;
mod dclor;
pub mod kalampoukas;
mod live;
mod ls_aimd;

use crate::study::Study;

pub use live::LIVE;

/// All studies, in the order in which they are listed.
pub const STUDIES: &[&dyn Study] =
    &[&a3::A3, &kalampoukas::Kalampoukas, &acwap::Acwap, &ls_aimd::LsAimd, &dclor::Dclor];
