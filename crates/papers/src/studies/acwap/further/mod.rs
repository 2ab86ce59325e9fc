//! ACWAP beyond the paper: noise, AQMs and marks, other controls, delayed ACKs, buffers, ten flows,
//! bursts, the first slow start.

mod bursts;
mod checks;
mod conditions;
mod outcome;
mod tables;

pub(super) use conditions::plan;
pub(super) use tables::evaluate;
