//! What all targets share: each is a function of octets, which libFuzzer calls, or
//! [`replay`] where there is no libFuzzer.

#[cfg(not(feature = "link"))]
pub mod replay;

/// Makes a program of the target `$run`: a fuzzer with the feature `link`, and without it one that
/// replays the corpus.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(feature = "link")]
        ::libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
            $run(octets);
        });

        #[cfg(not(feature = "link"))]
        fn main() -> ::std::process::ExitCode {
            $crate::replay::main(env!("CARGO_BIN_NAME"), |octets| {
                $run(octets);
            })
        }
    };
}
