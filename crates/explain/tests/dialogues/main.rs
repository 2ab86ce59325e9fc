//! Short dialogues, packet by packet: what a capture shows, and what has to be told of it.

mod odd_captures;
mod packets;
mod waits;
