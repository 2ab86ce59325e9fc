//! `ackline bench` with a stock iperf3 at the other end, in both roles, over both kinds of device.

/// Makes a test over each kind of device of each function that takes a world.
macro_rules! over_each_device {
    ($($(#[$attribute:meta])* $test:ident)*) => {
        mod tun {
            $(#[test]
            $(#[$attribute])*
            fn $test() {
                $crate::bench::world::with(
                    $crate::bench::world::own_name(concat!(module_path!(), "::", stringify!($test))),
                    $crate::bench::world::Link::Tun,
                    super::$test,
                );
            })*
        }
        mod ethernet {
            $(#[test]
            $(#[$attribute])*
            fn $test() {
                $crate::bench::world::with(
                    $crate::bench::world::own_name(concat!(module_path!(), "::", stringify!($test))),
                    $crate::bench::world::Link::Ethernet,
                    super::$test,
                );
            })*
        }
    };
}

mod agreement;
mod failures;
mod schema;
mod text;
mod transfers;
mod world;
