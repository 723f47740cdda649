//! Any text as an agent's settings file: hooks go in and come out again, and all that is not a hook stays what it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nmem::platforms::settings_file::{
    Hook, McpForm, Shape, Subscribed, add, add_server, add_to_list, checked, remove, remove_from_list, remove_server, server,
    server_of, to,
};

fuzz_target!(|text: &str| {
    let hooks =
        [Hook { on: Subscribed { tools: Some("Edit|Write"), ..to("Stop", "record", 10) }, command: "nmem record".into() }];
    for shape in [Shape::Nested, Shape::NestedMillis, Shape::Flat] {
        let Ok(with) = add(text, shape, &hooks) else { continue };
        let value = checked(&with, shape).expect("what was written is valid");
        assert!(value["hooks"]["Stop"].to_string().contains("nmem record"));
        let without = remove(&with, shape, &|command| command == "nmem record").expect("what was written can be removed");
        assert!(!without.contains("\"nmem record\"") || text.contains("nmem record"), "{without}");
        if let (Ok(before), Ok(after)) = (checked(text, shape), checked(&without, shape)) {
            let rest = |value: serde_json::Value| {
                let mut object = value.as_object().cloned().unwrap_or_default();
                object.remove("hooks");
                object.remove("version");
                object
            };
            assert_eq!(rest(before), rest(after), "{without}");
        }
    }
    let list = ["permissions", "allow"];
    if let Ok(with) = add_to_list(text, list, &["nmem search"]) {
        let without = remove_from_list(&with, list, &["nmem search"]).expect("what was written can be removed");
        assert!(!without.contains("\"nmem search\"") || text.contains("nmem search"), "{without}");
    }
    let own = server_of(McpForm::Plain, "nmem");
    if let Ok(with) = add_server(text, "mcpServers", &own) {
        assert_eq!(server(&with, "mcpServers").as_ref(), Some(&own), "{with}");
        let without = remove_server(&with, "mcpServers").expect("what was written can be removed");
        assert_eq!(server(&without, "mcpServers"), None, "{without}");
    }
});
