//! Every scenario of the library runs.

use ackline_lab::{EXAMPLES, Scenario, run_one};

/// Rates above this take too long in a test.
const FAST: [&str; 2] = ["1gbit", "10gbit"];

#[test]
#[ignore = "slow"]
fn each_runs_shortened() {
    for example in EXAMPLES {
        let scenario = Scenario::parse(example.text, example.name).unwrap();
        let short = ["duration=1500ms", "measure.from=500ms", "measure.until=1500ms", "repeat=1"];
        let scenario = scenario.with_set(short).unwrap_or_else(|error| panic!("{error}"));
        // The first point and the last.
        for point in [0, scenario.points() - 1] {
            if scenario.params(point).iter().any(|param| FAST.contains(&param.value.as_str())) {
                continue;
            }
            let result = run_one(&scenario, point, 0).unwrap().result;
            let at = format!("{} at {:?}", example.name, result.params);
            assert!(result.flows.iter().any(|flow| flow.received_bytes > 10_000), "{at}: nothing arrived");
            assert!(result.flows.iter().all(|flow| flow.wrong_reads == 0), "{at}");
            assert_eq!(result.unroutable, 0, "{at}");
            let unwanted = example.text.contains("queues = []");
            assert_eq!(result.queues.is_empty(), unwanted, "{at}: measured queues");
            assert!(result.queues.iter().all(|queue| queue.utilisation <= 1.0 + 1e-9), "{at}");
            assert!(!result.readings().is_empty());
        }
    }
}
