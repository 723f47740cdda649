//! Tests of the text that reaches the store: marks, windows, private text, and ids.

use super::*;
use crate::model::EXCERPT;
use proptest::prelude::*;

fn kept(text: &str) -> String {
    Redactor::default().clean(text.to_string()).0
}

/// Built from parts, so that no scanner of repositories takes the tests for a leak.
fn key() -> String {
    ["ghp", "_", "x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"].concat()
}

#[test]
fn marks_say_the_family_and_keep_the_rest() {
    assert_eq!(kept(&format!("push with {} now", key())), "push with [redacted:github-token] now");
}

#[test]
fn equal_secrets_have_equal_marks_under_one_key_and_guessable_ones_have_none() {
    let under = |key: u8| Redactor::new(&[], &[], Some(Box::new(move || Some([key; 32])))).unwrap();
    let mark = |key, text: &str| under(key).clean(text.to_string()).0;
    let once = mark(1, &key());
    assert!(once.starts_with("[redacted:github-token#") && once.len() == "[redacted:github-token#123456]".len(), "{once}");
    assert_eq!(once, mark(1, &key()));
    assert_ne!(once, mark(2, &key()));
    assert_ne!(once, mark(1, &key().replace('x', "y")));
    assert_eq!(mark(1, "DB_PASSWORD=hunter2!"), "DB_PASSWORD=[redacted:assigned-secret]");
}

#[test]
fn colours_hide_no_secret_and_are_not_kept() {
    let text = format!(
        "- Token: \u{1b}[33m{k}\u{1b}[0m \u{1b}[34mDB_PASSWORD\u{1b}[0m=hunter2! \u{1b}]8;;x\u{7}link\u{1b}(B \\033[1;31m{k}",
        k = key()
    );
    let out = kept(&text);
    assert!(!out.contains("x7Kq2") && !out.contains("hunter2") && !out.contains('\u{1b}'), "{out}");
    assert!(out.starts_with("- Token: [redacted:assigned-secret] DB_PASSWORD=[redacted:") && out.contains("link"), "{out}");
    assert_eq!(kept(&format!("x\u{1b}[33m{}", key())), "x [redacted:github-token]");
    assert_eq!(kept(&format!("x\u{1b} {}", key())), "x [redacted:github-token]");
    assert_eq!(kept("\u{1b}"), "");
    assert_eq!(kept("a\u{1b}[31"), "a 31");
    assert!(!kept(&format!("\u{1b}[ {k} \u{1b}[{k}", k = key())).contains("x7Kq2"));
}

#[test]
fn marks_stay_when_text_that_waited_is_cleaned_again() {
    let keyed = Redactor::new(&[], &[], Some(Box::new(|| Some([1; 32])))).unwrap();
    let text = format!(
        "Authorization: Bearer {k}\ntoken={k}\nDB_PASSWORD='{k}'\ncurl -u me:{k} https://me:{k}@h\n\"password\": \"hunter2!\" {k} sshpass -p pw1 x",
        k = key()
    );
    let once = keyed.clean(text).0;
    assert!(!once.contains("x7Kq2") && once.matches("[redacted:").count() == 8, "{once}");
    assert_eq!(keyed.clean(once.clone()).0, once);
}

#[test]
fn a_secret_in_the_middle_of_a_long_text_is_not_kept_even_unmarked() {
    let text = format!("{}{}{}", "a ".repeat(40_000), key(), " b".repeat(40_000));
    let out = Redactor::default().redact(&text, EXCERPT).unwrap();
    assert!(out.len() <= EXCERPT.0 && out.contains("bytes cut"), "{out}");
    assert!(!out.contains("x7Kq2"), "{out}");
}

#[test]
fn a_secret_cut_by_the_windows_edge_is_not_kept_in_part() {
    for shift in 0..80 {
        let edge = EXCERPT.0 + 2 * MARGIN - 40 + shift;
        let text = format!("{}{}{}", ".".repeat(edge), key(), ".".repeat(60_000));
        let out = Redactor::default().redact(&text, EXCERPT).unwrap();
        assert!(!out.contains("ghp") && !out.contains("JcY3aE5"), "shift {shift}: {out}");
    }
}

#[test]
fn a_long_value_is_not_kept_in_part_wherever_it_lies() {
    let part = |i: usize| format!("Qx{i:06}Zk7vB2mN9pL");
    let long = |parts: usize| (0..parts).map(part).collect::<String>();
    let left = |out: &str| (0..6000).filter(|i| out.contains(&part(*i)[..12])).count();
    for (parts, before, after) in [(30, 0, 0), (80, 0, 0), (400, 10_000, 0), (400, 30_000, 100_000), (6000, 100, 100)] {
        for (head, tail) in [
            ("SESSION_TOKEN=", " end"),
            ("\"sessionToken\": \"", "\", \"x\": 1"),
            ("Authorization: Bearer ", "\n"),
            ("curl -H 'Authorization: Bearer ", "' https://h"),
            ("aws_session_token = ", "\n"),
        ] {
            let text = format!("{}{head}{}{tail}{}", "word ".repeat(before / 5), long(parts), " word".repeat(after / 5));
            let out = Redactor::default().redact(&text, EXCERPT).unwrap();
            assert_eq!(left(&out), 0, "{parts} parts behind {head}, {before} bytes before");
        }
    }
}

#[test]
fn a_long_bearer_token_goes_with_its_signature() {
    let part = |n: usize| "aZ3kQ9".repeat(n);
    let token = format!("eyJ{}.eyJ{}.{}-sig_nature", part(20), part(200), part(60));
    assert_eq!(kept(&format!("Authorization: Bearer {token}\nnext")), "Authorization: [redacted:header]\nnext");
    assert_eq!(kept(&format!("got {token} back")), "got [redacted:jwt] back");
}

#[test]
fn many_marks_before_the_edge_do_not_pull_the_edge_into_what_is_kept() {
    // 250 keys shrink to marks of half their length: what follows moves towards the front.
    let text = format!("{}{}", format!("{} ", key()).repeat(900), "z".repeat(9));
    let out = Redactor::default().redact(&text, EXCERPT).unwrap();
    assert!(!out.contains("x7Kq2") && !out.contains("JcY3aE5"), "{out}");
}

#[test]
fn private_text_of_any_length_is_gone_before_anything_is_cut() {
    let long = "filler ".repeat(20_000);
    let text = format!("hi <private>{long} innersecret</private> x {long} y <Private >a<private>b</private>c</PRIVATE> z");
    let out = Redactor::default().redact(&text, EXCERPT).unwrap();
    assert!(out.starts_with("hi [redacted:private] x") && out.ends_with("y [redacted:private] z"), "{out}");
    assert_eq!(kept("a <private>never closed"), "a [redacted:private]");
    assert_eq!(kept("the <privateer> sails"), "the <privateer> sails");
}

#[test]
fn a_key_block_longer_than_a_window_is_not_kept_in_part() {
    let lines = "bGluZSBvZiBhIGtleSBibG9jayBvZiBQR1A\n".repeat(3000);
    let text = format!(
        "{}{}\n{lines}{}{}\nafter",
        "-----BEGIN ", "PGP PRIVATE KEY BLOCK-----", "-----END ", "PGP PRIVATE KEY BLOCK-----"
    );
    let out = Redactor::default().redact(&text, EXCERPT).unwrap();
    assert!(!out.contains("bGluZSBv") && out.ends_with("after"), "{out}");
}

#[test]
fn ids_stay_apart_whatever_is_found_in_them() {
    let own = Redactor::new(&["[a-z0-9_]{20,}".into()], &[], None).unwrap();
    let id = |text: &str| own.redact(text, ID);
    assert_eq!(id("short"), None);
    let (a, b) = (id("toolu_01abcdefghijklmnop0").unwrap(), id("toolu_01abcdefghijklmnop1").unwrap());
    assert!(a != b && a == id("toolu_01abcdefghijklmnop0").unwrap() && a.starts_with("redacted-"), "{a} {b}");
}

#[test]
fn the_users_own_patterns_count_too() {
    let own = Redactor::new(&[r"ACME-\d{4}".into()], &[], None).unwrap();
    assert_eq!(own.clean("ticket ACME-1234 x".to_string()).0, "ticket [redacted:own-pattern] x");
    assert!(Redactor::new(&["(".into()], &[], None).unwrap_err().contains("redact pattern \"(\""));
}

proptest! {
    #[test]
    fn a_planted_key_never_survives(before in "\\PC{0,300}", after in "\\PC{0,300}") {
        let out = kept(&format!("{before} {} {after}", key()));
        prop_assert!(!out.contains("x7Kq2mPz9LrT4vWb8N"));
    }

    #[test]
    fn any_text_is_cut_to_its_limit_without_a_panic(text in "\\PC{0,4000}") {
        prop_assert!(kept(&text).len() <= crate::model::FAILURE.0.max(text.len()));
    }
}
