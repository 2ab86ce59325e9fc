//! The sending half of a connection.
