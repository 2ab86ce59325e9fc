//! The kernel's end of the tests: sockets, and users without rights.

use crate::common::{BackgroundCommand, Exit, ackline, until};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::testing::isolated;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const STACK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
pub(crate) const PORT: u16 = 5001;

/// Runs a test inside a network namespace of its own; it is skipped if that or a TUN device cannot
/// be had.
pub(crate) fn with_tun(name: &str, body: impl FnOnce() + Send) {
    isolated(name, || {
        drop(Tun::create(&TunConfig::new().name("probe"))?);
        body();
        Ok(())
    });
}

/// Runs `ip` of iproute2, and says whether it succeeded.
pub(crate) fn ip(args: &str) -> bool {
    Command::new("ip").args(args.split(' ')).status().is_ok_and(|status| status.success())
}

/// Starts `ackline recv` and waits until it listens: until the kernel has a route to it.
pub(crate) fn receiver(args: &[&str]) -> BackgroundCommand {
    let child = BackgroundCommand::start(&mut ackline(&[&["recv", "-l", "198.18.0.2:5001"], args].concat()));
    until("the interface", || TcpListener::bind((KERNEL, 0)).ok());
    child
}

/// Connects to the stack; the receiver listens a moment after its interface exists.
pub(crate) fn connect() -> TcpStream {
    let stream = until("a connection", || {
        TcpStream::connect_timeout(&SocketAddr::from((STACK, PORT)), Duration::from_secs(10)).ok()
    });
    patient(stream)
}

/// The next connection of a kernel listener.
pub(crate) fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    listener.set_nonblocking(true).expect("an option");
    let (stream, from) = until("a connection", || listener.accept().ok());
    stream.set_nonblocking(false).expect("an option");
    (patient(stream), from)
}

/// No operation takes for ever.
fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("an option");
    stream
}

/// Sends everything and waits for the stack to close its side.
pub(crate) fn deliver(mut stream: TcpStream, data: &[u8]) -> io::Result<usize> {
    stream.write_all(data)?;
    stream.shutdown(Shutdown::Write)?;
    stream.read(&mut [0; 16])
}

/// Closing the socket resets the connection.
pub(crate) fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
}

/// A kernel socket that `ackline send` can reach once its interface exists: it listens on every
/// address.
pub(crate) fn kernel_listener() -> (TcpListener, String) {
    let listener =
        TcpListener::bind(("::", 0)).or_else(|_| TcpListener::bind(("0.0.0.0", 0))).expect("a listener");
    let port = listener.local_addr().expect("bound").port();
    (listener, format!("{KERNEL}:{port}"))
}

pub(crate) fn read_all(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    stream.read_to_end(&mut data).map(|_| data)
}

pub(crate) fn succeeded(ended: &Exit) {
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

/// A user without any rights, with a program of its own.
pub(crate) struct Nobody {
    directory: tempfile::TempDir,
}

impl Nobody {
    /// `None` if the test has no rights to give up.
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        // The build directory may be closed to others.
        std::fs::copy(env!("CARGO_BIN_EXE_ackline"), directory.path().join("ackline")).expect("copied");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
        let nobody = Self { directory };
        BackgroundCommand::try_start(&mut nobody.command(&["--version"])).map(BackgroundCommand::end)?;
        Some(nobody)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.directory.path().join("ackline"));
        command.args(args).uid(65_534).gid(65_534).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Runs `ackline` as a user without any rights; `None` if the test has none to give up.
pub(crate) fn as_nobody(args: &[&str]) -> Option<Exit> {
    let nobody = Nobody::new()?;
    // The number may not exist inside a user namespace.
    Some(BackgroundCommand::start(&mut nobody.command(args)).end())
}
