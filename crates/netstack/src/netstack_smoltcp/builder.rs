//! Setting up a stack.

use super::filter::{IpFilter, IpFilters};
use super::runner::Runner;
use super::stack::{Inlets, Stack};
use super::tcp::TcpListener;
use super::udp::UdpSocket;
use crate::queue::queue;
use crate::queue_device::QueueDevice;
use ackline_runtime::stack::Builder;
use ackline_tcp_core::ListenOn;
use ackline_tcp_core::policy::SpecError;
use std::io;
use std::net::IpAddr;
use tokio::runtime::Handle;

/// Settings of a [`Stack`]. By default nothing is enabled, and packets from and to addresses that
/// are no host's are dropped.
#[derive(Debug)]
pub struct StackBuilder {
    enable_udp: bool,
    enable_tcp: bool,
    enable_icmp: bool,
    stack_buffer_size: usize,
    udp_buffer_size: usize,
    tcp_buffer_size: usize,
    tcp_recv_buffer_size: Option<u32>,
    tcp_send_buffer_size: Option<u32>,
    mtu: usize,
    options: String,
    ip_filters: IpFilters<'static>,
}

impl Default for StackBuilder {
    fn default() -> Self {
        Self {
            enable_udp: false,
            enable_tcp: false,
            enable_icmp: false,
            stack_buffer_size: 1024,
            udp_buffer_size: 512,
            tcp_buffer_size: 512,
            tcp_recv_buffer_size: None,
            tcp_send_buffer_size: None,
            mtu: 1500,
            options: String::new(),
            ip_filters: IpFilters::with_non_broadcast(),
        }
    }
}

impl StackBuilder {
    /// UDP datagrams come to a [`UdpSocket`]. Otherwise they are dropped.
    #[must_use]
    pub fn enable_udp(mut self, enable: bool) -> Self {
        self.enable_udp = enable;
        self
    }

    /// Connections come to a [`TcpListener`]. Otherwise segments are dropped.
    #[must_use]
    pub fn enable_tcp(mut self, enable: bool) -> Self {
        self.enable_tcp = enable;
        self
    }

    /// Pings of any address are answered. Requires TCP.
    #[must_use]
    pub fn enable_icmp(mut self, enable: bool) -> Self {
        self.enable_icmp = enable;
        self
    }

    /// Packets that may wait for the program, which takes them from the stack. Default: 1,024.
    #[must_use]
    pub fn stack_buffer_size(mut self, size: usize) -> Self {
        self.stack_buffer_size = size;
        self
    }

    /// Datagrams that may wait in the UDP socket. Default: 512.
    #[must_use]
    pub fn udp_buffer_size(mut self, size: usize) -> Self {
        self.udp_buffer_size = size;
        self
    }

    /// Packets from the program that may wait for the stack. Default: 512.
    #[must_use]
    pub fn tcp_buffer_size(mut self, size: usize) -> Self {
        self.tcp_buffer_size = size;
        self
    }

    /// Most bytes of the receive buffer of each connection. Default: the stack's, which grows as it
    /// is needed.
    #[must_use]
    pub fn tcp_recv_buffer_size(mut self, size: u32) -> Self {
        self.tcp_recv_buffer_size = Some(size);
        self
    }

    /// Most bytes of the send buffer of each connection. Default: the stack's, which grows as it is
    /// needed.
    #[must_use]
    pub fn tcp_send_buffer_size(mut self, size: u32) -> Self {
        self.tcp_send_buffer_size = Some(size);
        self
    }

    /// Replaces the filters of packets from the program.
    #[must_use]
    pub fn set_ip_filters(mut self, filters: IpFilters<'static>) -> Self {
        self.ip_filters = filters;
        self
    }

    /// Adds a filter of packets from the program.
    #[must_use]
    pub fn add_ip_filter(mut self, filter: IpFilter<'static>) -> Self {
        self.ip_filters.add(filter);
        self
    }

    /// Adds a filter of packets from the program.
    #[must_use]
    pub fn add_ip_filter_fn<F>(mut self, filter: F) -> Self
    where
        F: Fn(&IpAddr, &IpAddr) -> bool + Send + Sync + 'static,
    {
        self.ip_filters.add_fn(filter);
        self
    }

    /// Largest IP packet that the stack sends, in bytes. Default: 1,500.
    #[must_use]
    pub fn mtu(mut self, mtu: usize) -> Self {
        self.mtu = mtu;
        self
    }

    /// Settings of connections and host by name, policies among them: `cc=bbr,sack=off`
    /// ([`ackline_runtime::stack::Builder::options`]). This stack's own.
    #[must_use]
    pub fn options(mut self, text: &str) -> Self {
        text.clone_into(&mut self.options);
        self
    }

    /// Makes the stack, what drives it, and what is enabled.
    ///
    /// # Errors
    /// `InvalidInput` if ICMP is enabled without TCP, the MTU is below 68 (RFC 791, section 3.2), or
    /// an option is wrong; `Other` outside a tokio runtime; if the process has no descriptor left
    /// for a timer.
    #[expect(clippy::type_complexity, reason = "the interface's")]
    pub fn build(self) -> io::Result<(Stack, Option<Runner>, Option<UdpSocket>, Option<TcpListener>)> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        if self.enable_icmp && !self.enable_tcp {
            return Err(invalid("ICMP requires TCP"));
        }
        let mtu = u32::try_from(self.mtu.min(65_535)).unwrap_or(65_535);
        if mtu < 68 {
            return Err(invalid("the MTU is below 68"));
        }
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (to_stack, incoming) = queue(self.tcp_buffer_size);
        let (outgoing, from_stack) = queue(self.stack_buffer_size);
        let device = QueueDevice::new(mtu, incoming, outgoing.clone());
        let mut builder = ackline_runtime::Stack::builder(device).any_address();
        if !self.enable_tcp {
            builder = builder.configure(|host| host.reset_unknown = false);
        }
        // Whole datagrams never reach the stack; those in fragments are not refused, either.
        builder = builder.configure(|host| host.refuse_datagrams = false);
        let (stack, driver) = self.settings(builder).map_err(|error| invalid(&error.to_string()))?.build()?;
        let (udp, udp_socket) = if self.enable_udp {
            let (sender, received) = queue(self.udp_buffer_size);
            (Some(sender), Some(UdpSocket::new(received, stack.incoming_udp()?, outgoing)))
        } else {
            (None, None)
        };
        let listener =
            if self.enable_tcp { Some(TcpListener::new(stack.listen(ListenOn::Any)?)) } else { None };
        let pings = if self.enable_icmp { Some(stack.packets()?) } else { None };
        let runner = Runner::new(driver, pings);
        let runner = if self.enable_tcp {
            Some(runner)
        } else {
            // It puts fragments together; the program has no runner to start.
            runtime.spawn(runner);
            None
        };
        let inlets = Inlets { stack: to_stack, udp, tcp: self.enable_tcp, icmp: self.enable_icmp };
        Ok((Stack::new(self.ip_filters, inlets, from_stack), runner, udp_socket, listener))
    }

    /// The settings of connections and host.
    fn settings(&self, builder: Builder) -> Result<Builder, SpecError> {
        let mut builder = builder.options(&self.options)?;
        if let Some(bytes) = self.tcp_recv_buffer_size {
            builder = builder.options(&format!("recv_buffer={bytes}"))?;
        }
        if let Some(bytes) = self.tcp_send_buffer_size {
            builder = builder.options(&format!("send_buffer={bytes}"))?;
        }
        Ok(builder)
    }
}
