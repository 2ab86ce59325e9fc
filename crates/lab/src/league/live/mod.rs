//! The league in real time: cells of the matrix by the real clock, with ackline's controls and the
//! kernel's own as senders.
//!
//! ```text
//!   cell ─┬─► real time: the sender is ackline's stack or the kernel's, everybody else the kernel ─► LiveRun ─┐
//!         └─► virtual time: ackline on all hosts, the same seed ────────────────────────────────────► Stand ──┴─► rule, page
//! ```
//!
//! A run in real time stands beside its simulated *twin*, and a fixed rule says whether the two
//! agree. A run that the machine did not keep up with is void: it is shown, and nothing is
//! concluded from it. There are no verdicts on controls: the cells are few, and their numbers are
//! those of one machine.

mod agreement;
mod cells;
mod columns;
mod document;
mod evaluation;
mod known;
mod machine;
mod page;
mod runs;
mod sender;
mod terminal;

pub use agreement::Agreement;
pub use cells::{live_matrix, unavailable};
pub use document::{LiveCells, LiveResult, SenderResult};
pub use evaluation::{LiveEvaluation, evaluate_live};
pub use machine::Machine;
pub use page::write_live_page;
pub use runs::{LiveOptions, LiveRun};
pub use sender::Sender;
