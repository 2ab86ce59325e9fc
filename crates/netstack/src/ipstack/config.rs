//! Settings.

use super::error::{IpStackError, Result};
use std::sync::Arc;
use std::time::Duration;

/// The least MTU of a link that carries IPv6 (RFC 8200, section 5).
const MIN_MTU: u16 = 1280;

/// Settings of a stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IpStackConfig {
    /// Largest IP packet that the stack sends, in bytes. Default: 1,280.
    pub mtu: u16,
    /// Each packet of the device has four bytes of information in front of it: flags and EtherType
    /// on Linux, the address family elsewhere. Default: false.
    pub packet_information: bool,
    /// Settings of connections.
    pub tcp_config: Arc<TcpConfig>,
    /// Time after which an idle UDP flow ends. Default: 30 s.
    pub udp_timeout: Duration,
}

impl Default for IpStackConfig {
    fn default() -> Self {
        Self {
            mtu: MIN_MTU,
            packet_information: false,
            tcp_config: Arc::default(),
            udp_timeout: Duration::from_secs(30),
        }
    }
}

impl IpStackConfig {
    /// Sets the settings of connections.
    pub fn with_tcp_config(&mut self, config: TcpConfig) -> &mut Self {
        self.tcp_config = Arc::new(config);
        self
    }

    /// Sets the time after which an idle UDP flow ends.
    pub const fn udp_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.udp_timeout = timeout;
        self
    }

    /// Sets the largest IP packet that the stack sends, in bytes.
    ///
    /// # Errors
    /// [`IpStackError::InvalidMtuSize`] below 1,280.
    pub const fn mtu(&mut self, mtu: u16) -> Result<&mut Self> {
        if mtu < MIN_MTU {
            return Err(IpStackError::InvalidMtuSize(mtu));
        }
        self.mtu = mtu;
        Ok(self)
    }

    /// Sets the largest IP packet that the stack sends, in bytes, also one that is too small for
    /// IPv6.
    pub const fn mtu_unchecked(&mut self, mtu: u16) -> &mut Self {
        self.mtu = mtu;
        self
    }

    /// Sets whether the device's packets have information in front of them.
    pub const fn packet_information(&mut self, packet_information: bool) -> &mut Self {
        self.packet_information = packet_information;
        self
    }
}

/// Settings of connections.
///
/// Five fields have no effect, and are there for programs that set them: this stack's timers are
/// those of RFC 6298 and RFC 8985, and the end of a connection that the program has dropped is
/// bounded by the host's `orphan_timeout`, which [`settings`](Self::settings) can change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TcpConfig {
    /// No effect.
    pub last_ack_max_retries: usize,
    /// No effect.
    pub last_ack_timeout: Duration,
    /// No effect.
    pub close_wait_timeout: Duration,
    /// Time after which an idle connection ends. Default: 7,440 s (RFC 5382, REQ-5).
    pub timeout: Duration,
    /// Time in TIME-WAIT, twice the maximum segment lifetime. Default: the stack's, 60 s.
    pub two_msl: Duration,
    /// Most bytes of the send buffer. 0, the default: the stack's, which grows as it is needed.
    pub max_unacked_bytes: u32,
    /// Most bytes of the receive buffer. 0, the default: the stack's, which grows as it is needed.
    pub read_buffer_size: usize,
    /// No effect.
    pub max_count_for_dup_ack: usize,
    /// The retransmission timeout before the first measurement of the round-trip time. Default: 1 s
    /// (RFC 6298, section 2).
    pub rto: Duration,
    /// No effect.
    pub max_retransmit_count: usize,
    /// TCP options of the stack's segments.
    pub options: Option<Vec<TcpOptions>>,
    /// Settings of connections and host by name, policies among them: `cc=bbr,sack=off`
    /// ([`ackline_runtime::stack::Builder::options`]). This stack's own. Default: none.
    pub settings: String,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            last_ack_max_retries: 3,
            last_ack_timeout: Duration::from_millis(500),
            close_wait_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(7_440),
            two_msl: Duration::from_secs(60),
            max_unacked_bytes: 0,
            read_buffer_size: 0,
            max_count_for_dup_ack: 3,
            rto: Duration::from_secs(1),
            max_retransmit_count: 3,
            options: None,
            settings: String::new(),
        }
    }
}

/// A TCP option of the stack's segments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TcpOptions {
    /// The most data that a segment may carry.
    MaximumSegmentSize(u16),
}
