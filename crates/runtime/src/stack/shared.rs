//! A tracer or observer that all shards of a stack call, one after the other.

use ackline_tcp_core::events::{PacketObserver, TraceEvent, Tracer};
use ackline_tcp_core::packet::TxPacket;
use ackline_tcp_core::{ConnId, Instant, RxPacket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One of several users of the same thing.
struct Shared<T: ?Sized> {
    inner: Arc<Mutex<Box<T>>>,
    shard: usize,
    shards: usize,
}

impl<T: ?Sized> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Box<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One for each shard.
    fn divide(inner: Box<T>, shards: usize) -> impl Iterator<Item = Self> {
        let inner = Arc::new(Mutex::new(inner));
        (0..shards).map(move |shard| Self { inner: inner.clone(), shard, shards })
    }

    /// The handle by which the stack as a whole knows a connection of this shard.
    fn name(&self, conn: ConnId) -> ConnId {
        conn.of_shard(self.shard, self.shards)
    }
}

impl<T: ?Sized> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("shard", &self.shard).finish_non_exhaustive()
    }
}

impl Tracer for Shared<dyn Tracer> {
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent) {
        let conn = self.name(conn);
        self.lock().trace(now, conn, event);
    }
}

impl PacketObserver for Shared<dyn PacketObserver> {
    fn received(&mut self, now: Instant, link: &[u8], packet: &RxPacket<'_>) {
        self.lock().received(now, link, packet);
    }

    fn sent(&mut self, now: Instant, link: &[u8], packet: &TxPacket<'_>) {
        let packet = packet.of_conn(packet.conn.map(|conn| self.name(conn)));
        self.lock().sent(now, link, &packet);
    }
}

/// A tracer for each of `shards` shards.
pub(super) fn tracers(tracer: Option<Box<dyn Tracer>>, shards: usize) -> Vec<Option<Box<dyn Tracer>>> {
    match tracer {
        Some(tracer) if shards > 1 => {
            Shared::divide(tracer, shards).map(|tracer| Some(Box::new(tracer) as Box<dyn Tracer>)).collect()
        }
        tracer => std::iter::once(tracer).chain((1..shards).map(|_| None)).collect(),
    }
}

/// An observer for each of `shards` shards.
pub(super) fn observers(
    observer: Option<Box<dyn PacketObserver>>,
    shards: usize,
) -> Vec<Option<Box<dyn PacketObserver>>> {
    match observer {
        Some(observer) if shards > 1 => Shared::divide(observer, shards)
            .map(|observer| Some(Box::new(observer) as Box<dyn PacketObserver>))
            .collect(),
        observer => std::iter::once(observer).chain((1..shards).map(|_| None)).collect(),
    }
}
