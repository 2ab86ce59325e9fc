//! Runs a program in a network of its own and carries each of its TCP connections on, through this
//! machine's network: a sandbox, or the client's half of a tunnel.
//!
//! ```text
//! proxy COMMAND [ARGUMENT...]          as root; for example: proxy curl -s http://192.0.2.7/
//! ```
//!
//! The program sees one interface, a TUN device with a default route. Every connection that it
//! opens, to any address and port, ends in ackline here; a socket of the kernel's is opened to the
//! same address, and bytes are copied between both.

use ackline::core::ListenOn;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::netns::Namespace;
use ackline::{Stack, TcpListener, TcpStream};
use std::error::Error;
use std::io;
use std::process::{Child, Command, ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match sandbox(&words).and_then(|(child, tun)| carry(child, tun)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the program in a new network namespace whose only way out is the TUN device.
fn sandbox(words: &[String]) -> Result<(Child, Tun), Box<dyn Error>> {
    let [program, arguments @ ..] = words else { return Err("usage: proxy COMMAND [ARGUMENT...]".into()) };
    let outside = Namespace::of_thread()?;
    let _inside = Namespace::new_for_thread()?;
    let own = InterfaceAddress::network("10.255.0.1/24".parse()?);
    let tun = Tun::create(&TunConfig::new().address(own).route("0.0.0.0/0".parse()?))?;
    let child = Command::new(program).args(arguments).spawn();
    outside.enter()?;
    Ok((child.map_err(|error| format!("{program}: {error}"))?, tun))
}

/// Carries connections until the program ends, and returns its exit status.
#[tokio::main(flavor = "current_thread")]
async fn carry(mut child: Child, tun: Tun) -> Result<ExitCode, Box<dyn Error>> {
    let stack = Stack::builder(tun).any_address().spawn()?;
    let listener = stack.listen(ListenOn::Any)?;
    tokio::select! {
        failed = accept(listener) => Err(failed.into()),
        ended = tokio::task::spawn_blocking(move || child.wait()) => {
            let code = ended??.code().and_then(|code| u8::try_from(code).ok());
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
    }
}

/// Carries connections until the device or the stack fails, and returns the error.
async fn accept(listener: TcpListener) -> io::Error {
    loop {
        let (inside, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => return error,
        };
        tokio::spawn(async move {
            if let Err(error) = carry_one(inside).await {
                eprintln!("proxy: {error}");
            }
        });
    }
}

/// Both directions of one connection, each to its own end. A failure on one side resets the other,
/// so that nobody takes a part for the whole.
async fn carry_one(mut inside: TcpStream) -> io::Result<()> {
    // What the program asked for.
    let wanted = inside.local_addr()?;
    let mut outside = match tokio::net::TcpStream::connect(wanted).await {
        Ok(outside) => outside,
        Err(error) => {
            inside.abort();
            return Err(io::Error::new(error.kind(), format!("{wanted}: {error}")));
        }
    };
    let copied = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    if copied.is_err() {
        inside.abort();
        outside.set_zero_linger()?;
    }
    copied.map(drop)
}
