//! A tokio echo server on ackline that the kernel's sockets talk to.
//!
//! ```text
//! echo_server                     in a network of its own: a kernel socket sends 64 MiB and compares the echo
//! echo_server tun0 10.0.0.2 7     on an existing TUN interface, until Ctrl-C; try `nc 10.0.0.2 7`
//! ```
//!
//! An interface for the second form, as root:
//!
//! ```text
//! ip tuntap add dev tun0 mode tun user $USER
//! ip address add 10.0.0.1/24 dev tun0
//! ip link set tun0 up
//! ```

use ackline::core::ListenOn;
use ackline::runtime::Error as SetupError;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::netns::{Namespace, enter_user_net_namespace};
use ackline::{Registry, Stack, TcpListener, TcpStream};
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes that the kernel's socket sends.
const LENGTH: usize = 64 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &args[..] {
        [] => match own_network() {
            Ok((_namespace, tun)) => exchange(tun),
            Err(error) if error.is_lack_of_rights() => {
                println!("SKIPPED: no TUN device to be had: {error}");
                Ok(())
            }
            Err(error) => Err(error.into()),
        },
        [device, address, port] => serve_until_interrupted(device, address, port),
        _ => Err("usage: echo_server [DEVICE ADDRESS PORT]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo_server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Accepts for ever, and echoes each connection in a task of its own.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        tokio::spawn(async move {
            match echo(stream).await {
                Ok(bytes) => println!("{peer}: {bytes} bytes"),
                Err(error) => println!("{peer}: {error}"),
            }
        });
    }
}

/// Sends back what comes, and closes when the peer does.
async fn echo(stream: TcpStream) -> io::Result<u64> {
    let (mut read, mut write) = stream.into_split();
    // Dropping the write half sends the FIN.
    tokio::io::copy(&mut read, &mut write).await
}

#[tokio::main(flavor = "current_thread")]
async fn serve_until_interrupted(device: &str, address: &str, port: &str) -> Result<()> {
    let address: IpAddr = address.parse()?;
    let stack = Stack::builder(Tun::open_existing(device, true)?)
        .address(address)
        .connections(Registry::default().conn_config())
        .spawn()?;
    let listener = stack.listen(ListenOn::Port(port.parse()?))?;
    println!("echoing on {}, until Ctrl-C", SocketAddr::new(address, port.parse()?));
    tokio::select! {
        ended = serve(listener) => ended?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    stack.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// A network namespace around this thread, and a TUN device in it. Without root's rights a user
/// namespace is put around both; the process has one thread yet, as that requires.
fn own_network() -> std::result::Result<(Option<Namespace>, Tun), SetupError> {
    let namespace = match Namespace::new_for_thread() {
        Ok(namespace) => Some(namespace),
        Err(error) if error.is_lack_of_rights() => {
            enter_user_net_namespace()?;
            None
        }
        Err(error) => return Err(error),
    };
    let kernel = InterfaceAddress::network("10.0.0.1/24".parse().expect("a network"));
    Ok((namespace, Tun::create(&TunConfig::new().address(kernel))?))
}

/// Serves on `tun` until one kernel socket has sent its bytes and got them back.
#[tokio::main(flavor = "current_thread")]
async fn exchange(tun: Tun) -> Result<()> {
    let address = SocketAddr::from(([10, 0, 0, 2], 7));
    let stack =
        Stack::builder(tun).address(address.ip()).connections(Registry::default().conn_config()).spawn()?;
    let listener = stack.listen(ListenOn::Address(address))?;
    tokio::select! {
        ended = serve(listener) => ended?,
        // The kernel's socket blocks, so it has a thread, which is in this thread's namespace.
        compared = tokio::task::spawn_blocking(move || kernel_client(address)) => {
            println!("the kernel's socket sent {} bytes and got the same back", compared??);
        }
    }
    stack.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// An ordinary program with an ordinary socket: how many bytes it sent and got back.
fn kernel_client(server: SocketAddr) -> io::Result<usize> {
    let sent: Vec<u8> = (0..LENGTH).map(|n| (n * 31 + n / 251) as u8).collect();
    let mut socket = std::net::TcpStream::connect_timeout(&server, Duration::from_secs(10))?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.set_write_timeout(Some(Duration::from_secs(30)))?;
    let mut received = Vec::with_capacity(LENGTH);
    let mut writer = socket.try_clone()?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            writer.write_all(&sent)?;
            writer.shutdown(Shutdown::Write)
        });
        socket.read_to_end(&mut received)?;
        sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    if received == sent {
        Ok(sent.len())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "the echo differs from what was sent"))
    }
}
