//! What a script talks to: the stack in virtual time, or whatever else takes packets and system
//! calls.

use crate::outcome::DialoguePacket;
use crate::script::{Call, Shell, TcpLine};
use crate::symbols::Errno;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A TCP under test. Times are microseconds since the start of the script.
pub trait Host {
    /// The time.
    fn now(&self) -> u64;

    /// Lets time pass until something happens, at most until `limit`; `false`: it is `limit`, and
    /// nothing has happened. `waits`: a call waits, and may go on without a packet.
    fn step(&mut self, limit: u64, waits: bool) -> bool;

    /// An IP packet goes in now: `line`, if it is a segment of the script.
    fn inject(&mut self, octets: Vec<u8>, line: Option<&TcpLine>);

    /// How much more than the script says a time may be off, in microseconds.
    fn slack(&self) -> u64 {
        0
    }

    /// Packets that came out and that nobody has looked at, in the order of their departure.
    fn sent(&mut self) -> &mut VecDeque<SentPacket>;

    /// Attempts a call. One that blocks is attempted again after every step, with the same
    /// `progress`.
    fn attempt(&mut self, call: &Call, progress: &mut Progress) -> Attempt;

    /// What the calls have opened since the last time.
    fn opened(&mut self) -> Vec<OpenCall>;

    /// Lines for a shell among the events.
    ///
    /// # Errors
    /// What of them this host does not have.
    fn shell(&mut self, shell: &Shell) -> Result<(), String>;

    /// `tcp_info` of the connection under test as assignments of Python; `ends`: those of the
    /// connection that packets belong to, this host's first.
    ///
    /// # Errors
    /// If this host does not tell.
    fn snapshot(&mut self, ends: Option<(SocketAddr, SocketAddr)>) -> Result<String, String>;

    /// Nothing is left of the connection between these ends, or only TIME-WAIT: a SYN may begin
    /// another one with numbers of its own.
    fn may_begin_anew(&mut self, local: SocketAddr, remote: SocketAddr) -> bool;

    /// Nothing is left of the connection between these ends, not even TIME-WAIT.
    fn is_over(&mut self, local: SocketAddr, remote: SocketAddr) -> bool;

    /// The fast open cookie that this host gives to the script's end.
    ///
    /// # Errors
    /// If it cannot be known.
    fn cookie(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<Vec<u8>, String>;

    /// The dialogue so far.
    fn passed(&self) -> Vec<DialoguePacket>;

    /// What the host concluded, for the report of a failure.
    fn concluded(&mut self) -> Vec<String>;
}

/// A packet that came out.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// When, in microseconds.
    pub at: u64,
    /// The IP packet.
    pub octets: Vec<u8>,
}

/// What an attempt at a call came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// It returned a number.
    Returned(i64),
    /// It returned -1, with this in `errno`.
    Failed(Errno),
    /// It waits.
    Blocks,
    /// It returned, but what it wrote to its arguments is not what the script says.
    Differs(String),
    /// The host has no notion of it.
    Unsupported(String),
}

/// What a call keeps between attempts, and in the end its result.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// It has been attempted before.
    pub begun: bool,
    /// Bytes moved so far.
    pub moved: usize,
    /// When it gives up, in microseconds.
    pub deadline: Option<u64>,
    /// When it returned, in microseconds, and what.
    pub(crate) done: Option<(u64, Attempt)>,
}

/// A call that concerns the connection under test.
#[derive(Clone, Copy, Debug)]
pub enum OpenCall {
    /// `listen` on this address.
    Listening(SocketAddr),
    /// `connect` made a connection between these ends, the host's first.
    Connecting(SocketAddr, SocketAddr),
}
