//! Linux: the TCP of a network namespace behind a TUN device.

use super::application::talk;
use super::{Act, End, PORT, PREFIX, Role};
use crate::bridge::{Wire, bridge};
use crate::rights::{self, Outcome};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::InterfaceAddress;
use std::future::pending;
use std::io;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Packets that wait to be read from the device: more than a window, so that none is lost there.
const QUEUE: u32 = 10_000;

/// A socket of the namespace.
enum Opens {
    Accepts(TcpListener),
    Connects(TcpSocket),
}

impl Opens {
    async fn open(self, role: Role) -> io::Result<TcpStream> {
        match self {
            Self::Accepts(listener) => Ok(listener.accept().await?.0),
            Self::Connects(socket) => socket.connect((role.peer(), PORT).into()).await,
        }
    }
}

pub(super) fn start(mut wire: Wire, act: Act) -> Result<End, String> {
    let (mut tun, opens) = open(&act).map_err(|error| error.to_string())?;
    Ok(End::spawn(|say| async move {
        let application = async {
            let said = match opens.open(act.role).await {
                Ok(mut stream) => {
                    let (reads, writes) = stream.split();
                    talk(reads, writes, act).await
                }
                Err(error) => Err(error.to_string()),
            };
            // Nobody listens any more if the exchange has ended.
            let _ = say.send(said);
            pending::<()>().await;
        };
        tokio::select! {
            () = application => {}
            gone = bridge(&mut tun, &mut *wire) => {
                let Err(error) = gone;
                eprintln!("the device of Linux: {error}");
            }
        }
    }))
}

/// A namespace that lives as long as device and socket.
fn open(act: &Act) -> Outcome<(Tun, Opens)> {
    let namespace = rights::namespace()?;
    let address = ipnet::Ipv4Net::new_assert(act.role.here(), PREFIX).into();
    let config =
        TunConfig::new().plain().mtu(act.mtu).queue_length(QUEUE).address(InterfaceAddress::network(address));
    // In the thread's runtime, but in the namespace.
    let runtime = tokio::runtime::Handle::current();
    let (tun, socket) = namespace.run(|| -> Outcome<(Tun, TcpSocket)> {
        let _inside = runtime.enter();
        Ok((Tun::create(&config)?, TcpSocket::new_v4()?))
    })??;
    let opens = match act.role {
        Role::Server => {
            socket.bind((act.role.here(), PORT).into())?;
            Opens::Accepts(socket.listen(1)?)
        }
        Role::Client => Opens::Connects(socket),
    };
    Ok((tun, opens))
}
