//! The `ackline` command with a congestion control and an ACK policy that ackline does not have.
//!
//! ```sh
//! cargo run --manifest-path examples/plugin/Cargo.toml -- demo --cc vegas --ack share-of-rtt
//! ```

mod share_of_rtt;
mod vegas;

use ackline::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    ackline_cli::main(Registry::default().with_cc(vegas::ENTRY).with_ack(share_of_rtt::ENTRY))
}
