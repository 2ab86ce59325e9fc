//! The `ackline` command with three congestion controls and an ACK policy that ackline does not have.
//!
//! ```sh
//! cargo run --manifest-path examples/plugin/Cargo.toml -- demo --cc binomial --ack share-of-rtt
//! ```

mod binomial;
mod delivery_rate;
mod known_rate;
mod share_of_rtt;

use ackline::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    let registry = Registry::default()
        .with_cc(binomial::ENTRY)
        .with_cc(delivery_rate::ENTRY)
        .with_cc(known_rate::ENTRY)
        .with_ack(share_of_rtt::ENTRY);
    ackline_cli::main(registry)
}
