//! Any text as a model's answer: what is read of it is bounded, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::{domains, extraction};

fuzz_target!(|answer: &str| {
    for name in ["coding", "books"] {
        let heard = extraction::read(answer, &domains::built_in(name).expect("a preset is sound"));
        assert!(heard.observations.len() <= 12 && heard.units.len() <= 8);
        for observed in &heard.observations {
            assert!(!observed.title.is_empty() && !observed.title.contains(['\n', '\u{1b}']), "{:?}", observed.title);
        }
    }
});
