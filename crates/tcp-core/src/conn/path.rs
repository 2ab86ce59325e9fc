//! What a connection learns of its path and the next one to the same host begins with.

use super::{Connection, header_len};
use crate::ctx::Ctx;
use crate::time::{Duration, Instant};

/// What packets of a connection have shown of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathNews {
    /// It carries IP packets of `mtu` bytes, and larger ones do not arrive.
    Narrow {
        /// IP bytes.
        mtu: u16,
        /// How long that is to be believed.
        expiry: Duration,
    },
    /// It carries all that the ends do.
    Wide,
}

impl Connection {
    /// Earlier connections to the same host found that its path carries `mtu` bytes, which is
    /// believed until `until`. Called before the handshake is complete.
    pub(crate) fn expect_path(&mut self, mtu: u16, until: Instant) {
        if let Some(handshake) = self.handshake.as_deref_mut() {
            handshake.path = Some((mtu, until));
        }
    }

    /// The device's MTU is that of the host's settings from now on. What is sent follows (RFC 9293, section
    /// 3.7.1: MMS_S); what the peer sends does not, because it was told an MSS in the handshake.
    /// Before there is a sender there is nothing to do: SYNs are written when they leave.
    pub(crate) fn follow_mtu(&mut self, ctx: &mut Ctx<'_>) {
        if self.is_early() || (self.handshake.is_none() && self.state.is_synchronized()) {
            self.snd.set_full_size(ctx, &self.config, self.full_smss(ctx.host));
        }
    }

    /// True if something was newly found of the path.
    pub(crate) fn has_path_news(&self) -> bool {
        self.snd.has_path_news()
    }

    /// What was newly found of the path.
    pub(crate) fn take_path_news(&mut self) -> Option<PathNews> {
        let (payload, full) = self.snd.take_path_news()?;
        if payload >= full {
            return Some(PathNews::Wide);
        }
        let mtu = payload + header_len(&self.tuple.remote_ip()) + self.option_len();
        Some(PathNews::Narrow {
            mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
            expiry: self.config.path_mtu_expiry,
        })
    }
}
