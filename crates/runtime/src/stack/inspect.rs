//! All connections of a stack, for tools that show or change them.

use super::Stack;
use crate::info::Info;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::{ConnId, Instant, WakeReason};
use std::net::SocketAddr;

/// A connection as a tool sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnSnapshot {
    /// Its handle.
    pub id: ConnId,
    /// Its description.
    pub info: Info,
    /// Its next deadline, and the purpose of that.
    pub deadline: Option<(Instant, WakeReason)>,
}

impl Stack {
    /// Up to `most` connections, those included that the application has dropped, and where to go
    /// on: `from` of the next call, or `None` after the last one. The first call has 0. The stack
    /// is locked meanwhile, so a tool asks for a few at a time; what begins or ends between two
    /// calls may be missing.
    ///
    /// Half-open connections and TIME-WAIT without an owner are records that do not have all of
    /// this: [`Stats`](crate::stats::Stats) counts them.
    #[must_use]
    pub fn snapshots(&self, from: usize, most: usize) -> (Vec<ConnSnapshot>, Option<usize>) {
        // One shard after the other.
        let (shards, mut from) = (self.shards.len(), from);
        let mut shown = Vec::new();
        while let Some(shard) = self.shards.get(from % shards)
            && shown.len() < most
        {
            let mut state = shard.lock();
            let ids: Vec<ConnId> = state.endpoint.conn_ids(from / shards).take(most - shown.len()).collect();
            from = match ids.last() {
                Some(last) => last.of_shard(shard.index, shards).index() + shards,
                None if shard.index + 1 < shards => shard.index + 1,
                None => return (shown, None),
            };
            shown.extend(ids.into_iter().filter_map(|id| {
                let conn = state.endpoint.inspect(id)?;
                let (info, deadline) = (Info::of(&conn), conn.next_deadline());
                Some(ConnSnapshot { id: id.of_shard(shard.index, shards), info, deadline })
            }));
        }
        (shown, Some(from))
    }

    /// Calls `act` with a connection, whoever owns it, to change its settings; `None` if it is
    /// gone. The stack is locked while it runs: it must not block, nor use the stack or its
    /// streams.
    pub fn with_connection<R>(&self, id: ConnId, act: impl FnOnce(&mut Conn<'_>, Instant) -> R) -> Option<R> {
        let (shard, id) = id.in_shard(self.shards.len());
        let shard = self.shards.get(shard)?;
        shard.act(|state, now, _| state.endpoint.inspect(id).map(|mut conn| act(&mut conn, now)))
    }

    /// Where the stack listens, and how many connections wait to be accepted there. The address of
    /// a listener on every address is unspecified.
    #[must_use]
    pub fn listeners(&self) -> Vec<(SocketAddr, usize)> {
        let mut sum = self.first().lock().listeners();
        for shard in self.shards.iter().skip(1) {
            for (place, waiting) in shard.lock().listeners() {
                match sum.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, sum)) => *sum += waiting,
                    None => sum.push((place, waiting)),
                }
            }
        }
        sum
    }
}
