//! passt, which carries the connections of a guest on through the kernel's sockets.

use super::{exchange, soon};
use ackline_runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink, bring_loopback_up};
use ackline_runtime::testing::{has_programs, isolated, skip};
use ackline_runtime::{Error, Stack, timer};
use ackline_tcp_core::Duration;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tokio::net::TcpListener;
use tun_tap::{Iface, Mode};

const NAME: &str = "passt::a_guest_of_passt_reaches_the_kernel";
/// The guest, and the router that passt plays, which stands for the loopback interface of passt's
/// machine.
const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// Ends a process, and removes its socket.
struct Ended<'a>(Child, &'a Path);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_file(self.1);
    }
}

/// An interface through which passt could reach the world, as it demands.
fn way_out() -> Result<Iface, Error> {
    let made = Iface::without_packet_info("world0", Mode::Tap);
    let tap = made.map_err(|source| Error::System { action: "make a TAP device", source })?;
    let mut netlink = Netlink::open()?;
    let index = netlink.interface("world0")?.index;
    netlink.add_address(index, InterfaceAddress::network("192.0.2.2/24".parse().expect("a network")))?;
    netlink.set_up(index)?;
    netlink.add_route(index, "0.0.0.0/0".parse().expect("a network"), Some([192, 0, 2, 1].into()))?;
    bring_loopback_up()?;
    Ok(tap)
}

#[test]
#[ignore = "needs passt"]
fn a_guest_of_passt_reaches_the_kernel() {
    if !has_programs(NAME, &["passt"]) {
        return;
    }
    isolated(NAME, || {
        let _tap = way_out()?;
        // passt gives up root's rights before it makes the socket.
        let path = std::env::temp_dir().join(format!("ackline-passt-{}", std::process::id()));
        let path_text = path.display().to_string();
        let mut command = Command::new("passt");
        command.args(["-4", "-f", "-1", "-s", &path_text, "-n", "24"]);
        command.args(["-a", &GUEST.to_string(), "-g", &ROUTER.to_string()]);
        let passt = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut passt = Ended(passt, &path);
        let end = timer::now() + Duration::from_secs(20);
        let config = FrameSocketConfig::default().address(format!("{GUEST}/24").parse().expect("a network"));
        let config = config.gateway(ROUTER.into());
        // A socket has a name before it takes connections.
        let device = loop {
            match FrameSocket::connect(&path, &config) {
                Ok(device) => break device,
                Err(error) if timer::now() >= end => return Err(error),
                Err(_) => {}
            }
            if let Ok(Some(status)) = passt.0.try_wait() {
                skip(NAME, &format!("passt ended: {status}"));
                return Ok(());
            }
            std::thread::yield_now();
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let stack = Stack::builder(device).address(GUEST).spawn().expect("a timerfd");
            let kernel = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("free");
            let port = kernel.local_addr().expect("bound").port();
            let (near, far) =
                soon(async { tokio::join!(stack.connect((ROUTER, port)), kernel.accept()) }).await;
            soon(exchange(near.expect("connected"), far.expect("accepted").0, 3_000_000)).await;
            assert_eq!(stack.stats().device.rx_malformed, 0);
        });
        Ok(())
    });
}
