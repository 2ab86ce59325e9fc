//! iperf3's control protocol: one connection on which a client and a server say in single octets
//! what comes next, exchange parameters and results as JSON, and end the test. Data flows on
//! connections of its own, each of which begins with the same cookie as the control connection.
//!
//! ```text
//! client                                   server
//!   connect, cookie ───────────────────────►        (ACCESS_DENIED while another test runs)
//!          ◄─────────────────────── PARAM_EXCHANGE
//!   parameters (JSON) ─────────────────────►
//!          ◄─────────────────────── CREATE_STREAMS
//!   connect, cookie; for each stream ──────►
//!          ◄─────────────── TEST_START, TEST_RUNNING
//!   ════════════════ data, either way ═══════════════
//!   TEST_END ──────────────────────────────►
//!          ◄────────────────────── EXCHANGE_RESULTS
//!   results (JSON) ────────────────────────►
//!          ◄──────────────────────── results (JSON)
//!          ◄─────────────────────── DISPLAY_RESULTS
//!   IPERF_DONE ────────────────────────────►
//! ```
//!
//! Observed between two iperf 3.12; numbers are big-endian, and JSON has its length in four octets
//! before it.

mod control;
mod cookie;
mod parameters;
mod results;
mod state;
mod values;

pub(super) use control::{Control, MAX_CLIENT_RESULTS, MAX_JSON, MAX_PARAMETERS, PATIENCE};
pub(super) use cookie::{COOKIE_SIZE, Cookie};
pub(super) use parameters::TestParameters;
pub(super) use results::{Results, StreamResult};
pub(super) use state::{ServerError, TestState};

#[cfg(test)]
mod tests;
