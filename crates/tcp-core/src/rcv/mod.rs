//! The receiving half of a connection.
