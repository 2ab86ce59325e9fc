//! The kernel's TCP at both ends, in two namespaces joined by a pair of virtual interfaces.

use super::{KERNEL, Outcome, PORT, Rate, join, kernel_reads, kernel_writes};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

pub(super) fn sends(length: Duration) -> Outcome<Rate> {
    let there = std::thread::scope(|scope| {
        let thread = scope.spawn(Namespace::new_for_thread);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Netlink::open()?.add_veth("ref0", "ref1", &there)?;
    set_up("ref0", "10.78.0.1/24")?;
    there.run(|| set_up("ref1", "10.78.0.2/24"))??;

    let listener = TcpListener::bind((KERNEL, PORT))?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let write = || kernel_writes((KERNEL, PORT).into());
            there.run(write).unwrap_or_else(|error| Err(io::Error::other(error)))
        });
        let rate = kernel_reads(&listener, length);
        join(writer)?;
        Ok(rate?)
    })
}

fn set_up(name: &str, network: &str) -> Outcome<()> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    netlink.make_quiet(index)?;
    netlink.add_address(index, InterfaceAddress::network(network.parse()?))?;
    netlink.set_up(index)?;
    Ok(())
}
