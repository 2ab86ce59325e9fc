//! The two worlds: a server's address, how connections come about, and what has no common name.

/// The kernel's sockets on loopback.
pub(crate) mod kernel {
    use ackline_runtime::testing::{set_deaf, skip};
    use std::io;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Duration;
    use tokio::net::ToSocketAddrs;
    pub(crate) use tokio::net::{TcpListener, TcpSocket, TcpStream};

    pub(crate) struct Net;

    impl Net {
        pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) async fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
            TcpStream::connect(addr).await
        }

        pub(crate) async fn bind(&self, addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
            TcpListener::bind(addr).await
        }

        /// A socket of the server.
        pub(crate) fn server_socket(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v4()
        }

        /// A socket of the client.
        pub(crate) fn client_socket(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v4()
        }

        pub(crate) fn client_socket_v6(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v6()
        }

        /// What the server's host receives for `server` is lost from here on. If this user may not
        /// do that, reports that the test `name` could not run, and returns `false`.
        pub(crate) fn silence(&self, server: &TcpStream, name: &str) -> bool {
            match set_deaf(server, true) {
                Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                    skip(name, &format!("a filter of a socket: {why}"));
                    false
                }
                set => {
                    set.expect("a filter");
                    true
                }
            }
        }

        #[expect(deprecated, reason = "closing blocks then, and nothing is closed here while it is set")]
        pub(crate) fn set_linger(&self, stream: &TcpStream, linger: Option<Duration>) {
            stream.set_linger(linger).expect("set");
        }

        pub(crate) fn set_user_timeout(&self, stream: &TcpStream, limit: Duration) {
            let limit = u32::try_from(limit.as_millis()).expect("not for ever");
            rustix::net::sockopt::set_tcp_user_timeout(stream, limit).expect("set");
        }

        /// Two ends of a connection: the client's and the server's.
        pub(crate) async fn pair(&self) -> (TcpStream, TcpStream) {
            let listener = self.bind((Self::SERVER, 0)).await.expect("bound");
            let to: SocketAddr = listener.local_addr().expect("bound");
            let (client, server) = tokio::join!(self.connect(to), listener.accept());
            (client.expect("connected"), server.expect("accepted").0)
        }
    }
}

/// Two stacks on a cable in memory.
pub(crate) mod ackline {
    use ackline_runtime::Stack;
    use ackline_runtime::device::channel::{Channel, ChannelConfig};
    pub(crate) use ackline_runtime::{TcpListener, TcpSocket, TcpStream};
    use std::io;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::time::Duration;
    use tokio::net::ToSocketAddrs;
    use tokio::task::JoinHandle;

    pub(crate) struct Net {
        client: Stack,
        server: Stack,
        /// The server's host runs.
        driver: JoinHandle<io::Result<()>>,
    }

    impl Net {
        pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

        pub(crate) fn new() -> Self {
            let (near, far) = Channel::pair(ChannelConfig::default());
            let client = Stack::builder(near)
                .address([10, 0, 0, 1])
                .address(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1))
                .spawn()
                .expect("a timer");
            let (server, driver) = Stack::builder(far).address(Self::SERVER).build().expect("a timer");
            Self { client, server, driver: tokio::spawn(driver) }
        }

        pub(crate) async fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
            TcpStream::connect(&self.client, addr).await
        }

        pub(crate) async fn bind(&self, addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
            TcpListener::bind(&self.server, addr).await
        }

        pub(crate) fn server_socket(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v4(&self.server)
        }

        pub(crate) fn client_socket(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v4(&self.client)
        }

        pub(crate) fn client_socket_v6(&self) -> io::Result<TcpSocket> {
            TcpSocket::new_v6(&self.client)
        }

        pub(crate) fn silence(&self, _server: &TcpStream, _name: &str) -> bool {
            self.driver.abort();
            true
        }

        pub(crate) fn set_linger(&self, stream: &TcpStream, linger: Option<Duration>) {
            stream.set_linger(linger).expect("set");
        }

        pub(crate) fn set_user_timeout(&self, stream: &TcpStream, limit: Duration) {
            stream.set_tcp_user_timeout(Some(limit)).expect("set");
        }

        pub(crate) async fn pair(&self) -> (TcpStream, TcpStream) {
            let listener = self.bind((Self::SERVER, 0)).await.expect("bound");
            let to: SocketAddr = listener.local_addr().expect("bound");
            let (client, server) = tokio::join!(self.connect(to), listener.accept());
            (client.expect("connected"), server.expect("accepted").0)
        }
    }
}
