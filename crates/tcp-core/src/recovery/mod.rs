//! Loss detection and recovery.
