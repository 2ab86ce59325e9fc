//! Windows, Nagle, pacing, reservations.
