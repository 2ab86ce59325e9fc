//! The rates of rules: what waits for its turn is not read, so its sender is held by TCP's window.

mod bucket;

use crate::counters::Counters;
use crate::rules::rate::RateLimit;
use ackline_runtime::timer;
use ackline_tcp_core::{Instant, Rate};
use bucket::TokenBucket;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::time::sleep;

/// Both directions of one rule, which all of its connections and flows share.
#[derive(Debug)]
pub(crate) struct RuleThrottle {
    up: Option<Throttle>,
    down: Option<Throttle>,
}

impl RuleThrottle {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let throttle = |rate: Option<Rate>| rate.map(|rate| Throttle(Mutex::new(TokenBucket::new(rate))));
        Self { up: throttle(limit.up), down: throttle(limit.down) }
    }
}

/// One direction of a rule.
#[derive(Debug)]
struct Throttle(Mutex<TokenBucket>);

impl Throttle {
    fn lock(&self) -> MutexGuard<'_, TokenBucket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rates of one connection or flow: those of its rule, which another one may replace once the
/// client has stated the server's name.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    counters: &'a Counters,
    first: Option<&'a RuleThrottle>,
    stated: OnceLock<Option<&'a RuleThrottle>>,
}

impl<'a> Pace<'a> {
    /// Those of a rule, or none.
    pub(crate) const fn new(counters: &'a Counters, rule: Option<&'a RuleThrottle>) -> Self {
        Self { counters, first: rule, stated: OnceLock::new() }
    }

    /// This rule has decided in the end.
    pub(crate) fn settle(&self, rule: Option<&'a RuleThrottle>) {
        // There is one statement.
        let _ = self.stated.set(rule);
    }

    /// Where what a client sends waits.
    pub(crate) fn up(&self) -> Option<Gate<'a>> {
        self.gate(self.rule()?.up.as_ref())
    }

    /// Where what is for a client waits.
    pub(crate) fn down(&self) -> Option<Gate<'a>> {
        self.gate(self.rule()?.down.as_ref())
    }

    fn rule(&self) -> Option<&'a RuleThrottle> {
        *self.stated.get().unwrap_or(&self.first)
    }

    fn gate(&self, throttle: Option<&'a Throttle>) -> Option<Gate<'a>> {
        throttle.map(|throttle| Gate { throttle, counters: self.counters })
    }
}

/// Where one direction of a connection or flow waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'a> {
    throttle: &'a Throttle,
    counters: &'a Counters,
}

impl<'a> Gate<'a> {
    /// Waits for the turn of the first bytes of so many, at least of one.
    pub(crate) async fn turn(self, bytes: usize) -> Turn<'a> {
        let quantum = self.throttle.lock().quantum();
        self.turn_for((bytes as u64).clamp(1, quantum)).await
    }

    /// Waits for the turn of a datagram, and takes it.
    pub(crate) async fn pass(self, datagram: usize) {
        self.turn_for(datagram as u64).await.spend(datagram);
    }

    async fn turn_for(self, bytes: u64) -> Turn<'a> {
        let now = timer::now();
        let at = self.throttle.lock().reserve(now, bytes);
        // If it is dropped while it waits, it has used nothing.
        let turn = Turn { throttle: self.throttle, left: bytes };
        if at > now {
            self.wait(now, at).await;
        }
        turn
    }

    async fn wait(self, now: Instant, at: Instant) {
        self.counters.rate_waits.one();
        let _waiting = self.counters.rate_waiting.enter();
        sleep(at.since(now).into()).await;
    }
}

/// A turn that has come. What is not spent until it is dropped is for others.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    throttle: &'a Throttle,
    left: u64,
}

impl Turn<'_> {
    /// Bytes that may pass.
    pub(crate) fn left(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    /// Notes that so many have passed.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as u64);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.throttle.lock().give_back(self.left);
        }
    }
}
