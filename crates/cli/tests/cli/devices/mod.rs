//! The devices that a stack may have: an Ethernet, a Unix socket, a raw socket.

mod dev;
mod frame_socket;
mod raw;
