//! Forwards a port: connections that end here go on to a server of the kernel's network.
//!
//! ```text
//! forward DEVICE ADDRESS PORT SERVER:PORT          forward tun0 10.0.0.2 8080 192.0.2.7:80
//! ```

use ackline::core::ListenOn;
use ackline::runtime::device::tun::Tun;
use ackline::{Stack, TcpStream};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::{env, io};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [device, address, port, server] = &words[..] else {
        return Err("usage: forward DEVICE ADDRESS PORT SERVER:PORT".into());
    };
    let (address, server): (IpAddr, SocketAddr) = (address.parse()?, server.parse()?);
    let stack = Stack::builder(Tun::open_existing(device, true)?).address(address).spawn()?;
    // Each SYN is held until its fate is known.
    let incoming = stack.listen(ListenOn::Port(port.parse()?))?.incoming()?;
    println!("{} to {server}", SocketAddr::new(address, port.parse()?));
    loop {
        let syn = incoming.next().await?;
        tokio::spawn(async move {
            // A client of a server that is down hears the same as without a forwarder.
            match tokio::net::TcpStream::connect(server).await {
                Ok(outside) => match syn.accept().await {
                    Ok(inside) => pass(inside, outside).await,
                    Err(error) => Err(error),
                },
                Err(error) => {
                    syn.refuse(ackline::runtime::Refusal::Rst);
                    Err(error)
                }
            }
            .unwrap_or_else(|error| eprintln!("forward: {server}: {error}"));
        });
    }
}

/// Both directions, each to its own end. A failure of one side resets the other.
async fn pass(mut inside: TcpStream, mut outside: tokio::net::TcpStream) -> io::Result<()> {
    let passed = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    if passed.is_err() {
        inside.abort();
        outside.set_zero_linger()?;
    }
    passed.map(drop)
}
