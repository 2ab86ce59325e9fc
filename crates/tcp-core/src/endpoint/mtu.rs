//! The MTU of the device has changed: everything that depends on it follows.

use super::Endpoint;
use crate::config::options::{self, HOST};
use crate::policy::SpecError;
use crate::time::Instant;
use alloc::string::ToString as _;

impl Endpoint {
    /// The device carries IP packets of at most `mtu` bytes from now on, 68 to 65,535.
    ///
    /// If that is less than before, connections send smaller segments from the next packet on. What
    /// left before fitted the device, so it is repaired only if it is lost, in segments of the new
    /// size. If it is more, connections try segments as large as the MTU and the peer's MSS permit,
    /// by a probe if they can. New connections announce an MSS that fits. A peer that has been told
    /// the MSS of a larger MTU learns of the smaller one from its own path MTU discovery. Below
    /// 1280 bytes no IPv6 connection begins (RFC 8200, section 5); those that exist go on in
    /// packets that fit.
    ///
    /// What is known of [paths](Self::path_entries) stays: an entry counts if it is below the MTU.
    ///
    /// O(number of connections).
    ///
    /// # Errors
    /// As for [`EndpointConfig::mtu`](crate::EndpointConfig::mtu) in text: `mtu` is out of range.
    /// Nothing changes then.
    pub fn set_mtu(&mut self, now: Instant, mtu: u32) -> Result<(), SpecError> {
        let before = self.context.config.mtu;
        options::set(HOST, &mut self.context.config, "mtu", &mtu.to_string())?;
        let (owners, mut cx) = self.enter(now);
        if mtu == before {
            return Ok(());
        }
        cx.observe.counters.mtu_changes += 1;
        owners.egress.resize(cx.config);
        for index in owners.table.slots.indices_where(|_| true) {
            let id = owners.table.slots.id(index);
            if let Some(conn) = owners.table.slots.conn_mut(index) {
                conn.follow_mtu(&mut cx.conn(id));
            }
            owners.touch(&mut cx, index);
        }
        owners.settle(&mut cx);
        Ok(())
    }
}
