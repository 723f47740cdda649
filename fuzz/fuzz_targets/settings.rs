//! Any text as an agent's settings file: hooks go in and come out again, and all that is not a hook stays what it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::platforms::settings::{Hook, add, checked, remove};

fuzz_target!(|text: &str| {
    let hooks = [Hook { event: "Stop", matcher: Some("Edit|Write"), command: "nmem record".into(), timeout: 10 }];
    if let Ok(with) = add(text, &hooks) {
        let value = checked(&with).expect("what was written is sound");
        assert!(value["hooks"]["Stop"].to_string().contains("nmem record"));
        let without = remove(&with, &|command| command == "nmem record").expect("what was written can be taken out");
        assert!(!without.contains("\"nmem record\"") || text.contains("nmem record"), "{without}");
        if let (Ok(before), Ok(after)) = (checked(text), checked(&without)) {
            let rest = |value: serde_json::Value| {
                let mut object = value.as_object().cloned().unwrap_or_default();
                object.remove("hooks");
                object
            };
            assert_eq!(rest(before), rest(after), "{without}");
        }
    }
});
