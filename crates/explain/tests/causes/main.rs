//! The simulator makes captures of connections whose trouble is known; the story has to name it,
//! from either end and from the middle of the path, without the comments that state it.

mod limits;
mod losses;
mod scenarios;
mod traces;
mod world;
