//! What others reach on this machine, to hold the stack's speed against:
//!
//! - `bare`: a loop that exchanges 64 KiB super-packets with the kernel's TCP over a TUN device and does nothing
//!   else that a TCP does. No stack on a TUN device can be faster.
//! - `kernel`: the kernel's TCP at both ends, over a pair of virtual interfaces.
//! - `smoltcp`: smoltcp and the kernel's TCP over a TUN device without offload.
//!
//! ```text
//! cargo run --release --example references -- [bare|kernel|smoltcp] [--seconds S] [--json]
//! ```
//!
//! Everything happens in network namespaces of the program's own.

mod bare;
mod kernel;
mod smoltcp;

use ackline_runtime::Error;
use ackline_runtime::device::tun::TunConfig;
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};
use ackline_runtime::timer;
use clap::{Parser, ValueEnum};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// What others reach on this machine.
#[derive(Debug, Parser)]
struct Options {
    /// Only these.
    #[arg(value_enum)]
    references: Vec<Reference>,
    /// Length of each measurement, in seconds.
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reference {
    /// A loop without a TCP, over TUN with offload.
    Bare,
    /// The kernel at both ends, over veth.
    Kernel,
    /// smoltcp, over TUN without offload.
    Smoltcp,
}

/// How a measurement ended.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a receiver measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate {
    bytes: u64,
    seconds: f64,
}

impl Rate {
    fn gbit_s(self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds / 1e9
    }
}

/// The kernel's address on a TUN device, and that of who is at the other end.
const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 7000;

fn tun_config() -> TunConfig {
    TunConfig::new().address(InterfaceAddress::network("10.78.0.1/24".parse().expect("a network")))
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("references: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Outcome<()> {
    // As root a namespace of this thread is enough; an ordinary user needs a user namespace around it.
    match Namespace::new_for_thread() {
        Ok(_) => {}
        Err(Error::NamespaceForbidden) => enter_user_net_namespace()?,
        Err(error) => return Err(error.into()),
    }
    let length = Duration::from_secs_f64(options.seconds);
    let mut results = Vec::new();
    for reference in Reference::value_variants() {
        if !options.references.is_empty() && !options.references.contains(reference) {
            continue;
        }
        let (what, (send, receive)) = match reference {
            Reference::Bare => {
                ("bare loop, TUN with offload", (bare::sends(length)?, Some(bare::receives(length)?)))
            }
            Reference::Kernel => ("kernel to kernel, veth", (kernel::sends(length)?, None)),
            Reference::Smoltcp => {
                ("smoltcp, TUN without offload", (smoltcp::sends(length)?, Some(smoltcp::receives(length)?)))
            }
        };
        results.push((*reference, what, send, receive));
    }
    if options.json {
        let object: serde_json::Map<_, _> = results
            .iter()
            .map(|(reference, _, send, receive)| {
                let name = reference.to_possible_value().expect("no variant is hidden");
                let json = |rate: &Rate| {
                    serde_json::json!({
                        "bytes": rate.bytes, "seconds": rate.seconds, "gbit_s": rate.gbit_s(),
                    })
                };
                let value = serde_json::json!({ "send": json(send), "receive": receive.as_ref().map(json) });
                (name.get_name().to_owned(), value)
            })
            .collect();
        println!("{}", serde_json::Value::from(object));
    } else {
        println!("{:<30} {:>14} {:>17}", "", "sends, Gbit/s", "receives, Gbit/s");
        for (_, what, send, receive) in &results {
            let receive =
                receive.map_or_else(|| "the same".to_owned(), |rate| format!("{:.2}", rate.gbit_s()));
            println!("{what:<30} {:>14.2} {receive:>17}", send.gbit_s());
        }
    }
    Ok(())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number between 0.05 and 3600 is needed".to_owned()),
    }
}

/// Accepts one connection and reads from it for `length`, from the first byte on.
fn kernel_reads(listener: &TcpListener, length: Duration) -> io::Result<Rate> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut buffer = vec![0; 512 << 10];
    if stream.read(&mut buffer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let start = timer::now();
    let mut bytes = 0;
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes += read as u64;
        let elapsed = Duration::from(timer::now().since(start));
        if elapsed >= length {
            return Ok(Rate { bytes, seconds: elapsed.as_secs_f64() });
        }
    }
}

/// Connects and writes until the peer has had enough.
fn kernel_writes(to: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let buffer = vec![0; 512 << 10];
    loop {
        match stream.write(&buffer) {
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits for a thread.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, io::Result<T>>) -> Outcome<T> {
    match thread.join() {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
