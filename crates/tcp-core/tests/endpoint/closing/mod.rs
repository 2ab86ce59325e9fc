//! How connections end: what they still owe, orphans, TIME-WAIT.

mod ended;
mod orphans;
mod time_wait;
