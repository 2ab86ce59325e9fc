//! ipstack, set up as the example `tun` of its repository.

use ackline_tunnel_rivals::{MTU, Tun, carry_on};
use ipstack::{IpStack, IpStackConfig, IpStackStream, TcpConfig, TcpOptions};
use tokio::io::AsyncWriteExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tcp = TcpConfig::default();
    tcp.options = Some(vec![TcpOptions::MaximumSegmentSize(MTU - 40)]);
    tcp.max_unacked_bytes = 256 << 10;
    let mut config = IpStackConfig::default();
    config.mtu(MTU)?.with_tcp_config(tcp);
    let mut stack = IpStack::new(config, Tun::inherited()?);
    loop {
        let IpStackStream::Tcp(mut stream) = stack.accept().await? else { continue };
        let destination = stream.peer_addr();
        tokio::spawn(async move {
            // What fails ends with it.
            if let Ok(mut out) = carry_on(&mut stream, destination).await {
                let _ = out.shutdown().await;
            }
            let _ = stream.shutdown().await;
        });
    }
}
