//! The stream's bytes: where they are, how many there may be, and what size of segments they make.

pub(in crate::snd) mod buffer;
pub(in crate::snd) mod chunks;
pub(in crate::snd) mod new_data;
pub(in crate::snd) mod write_space;
