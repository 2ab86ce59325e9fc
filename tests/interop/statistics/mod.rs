//! What both ends say of a connection, and what they count.

mod counters;
mod limits;
mod tcp_info;
