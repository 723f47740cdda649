//! The page for people: `nmem view` writes it to a file, `nmem serve` keeps it up to date (ADR/0050).
//!
//! Here: the HTML around the data of `snapshot`. The folder `page` contains the page's own HTML, CSS and JavaScript.
//!
//! The page loads no external resources. Its content security policy allows only its own script and style, by their
//! hashes, so stored text cannot run even if a mistake let it into the markup; the script writes text, never HTML.

pub mod snapshot;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use snapshot::Detail;
pub use snapshot::{PageScope, Snapshot, with_records};
use std::io::Write;
use std::sync::LazyLock;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// The scripts, in the order in which they run.
const SCRIPTS: [&str; 7] = [
    include_str!("page/dom.js"),
    include_str!("page/data.js"),
    include_str!("page/pictures.js"),
    include_str!("page/lists.js"),
    include_str!("page/details.js"),
    include_str!("page/live.js"),
    include_str!("page/app.js"),
];

/// Levels of detail of a file, in descending order: the first one that makes the file small enough is used.
const DETAILS: [Detail; 6] = [
    Detail::FULL,
    Detail { source_text: 2_000, tool_uses: 50, tool_texts: true, unit_files: 40, injection_texts: 5_000 },
    Detail { source_text: 800, tool_uses: 20, tool_texts: true, unit_files: 25, injection_texts: 2_000 },
    Detail { source_text: 500, tool_uses: 10, tool_texts: true, unit_files: 15, injection_texts: 1_000 },
    Detail { source_text: 300, tool_uses: 6, tool_texts: true, unit_files: 10, injection_texts: 500 },
    Detail { source_text: 200, tool_uses: 4, tool_texts: true, unit_files: 6, injection_texts: 200 },
];
/// Level of detail of a file if none of them makes it small enough.
const LEAST: Detail = Detail { source_text: 100, tool_uses: 2, tool_texts: true, unit_files: 4, injection_texts: 100 };
/// Maximum bytes of a file with few memories, and bytes per memory for a larger one.
const SMALL: usize = 960_000;
const EACH: usize = 780;
/// Maximum ratio of JSON to the size of a file at which compression is tried: JSON shrinks to a quarter.
const PACKED: usize = 5;

/// Returns the page as a self-contained file. If there are many memories, it contains less of their sources.
pub fn file(snapshot: &Snapshot) -> Result<String> {
    let policy = format!("{}; connect-src 'none'", policy());
    let wanted = SMALL.max(snapshot.memory_count() * EACH);
    let with = |json: &[u8]| -> Result<String> { Ok(filled(&policy, &STANDARD.encode(packed(json)?))) };
    for detail in DETAILS {
        let json = serde_json::to_vec(&snapshot.json(detail))?;
        if json.len() > wanted * PACKED {
            continue;
        }
        let html = with(&json)?;
        if html.len() <= wanted {
            return Ok(html);
        }
    }
    with(&serde_json::to_vec(&snapshot.json(LEAST))?)
}

/// Returns the page of `nmem serve`, without data: it requests the data from its server.
pub fn live() -> String {
    filled(&format!("{}; connect-src 'self'", policy()), "")
}

/// The content security policy of the live page, as a header: no other page may frame it.
pub static LIVE_POLICY: LazyLock<String> = LazyLock::new(|| format!("{}; connect-src 'self'; frame-ancestors 'none'", policy()));

/// Compresses JSON with gzip.
pub fn compressed(value: &Value) -> Result<Vec<u8>> {
    // Not serialised directly into the encoder, which would be called for every bracket and take many times as long.
    packed(&serde_json::to_vec(value)?)
}

fn packed(json: &[u8]) -> Result<Vec<u8>> {
    let mut to = GzEncoder::new(Vec::new(), Compression::default());
    to.write_all(json)?;
    Ok(to.finish()?)
}

fn filled(policy: &str, data: &str) -> String {
    let mut out = String::with_capacity(HTML.len() + STYLE.len() + data.len() + (64 << 10));
    let mut rest = HTML;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        match name {
            "policy" => out.push_str(policy),
            "style" => out.push_str(STYLE),
            "script" => out.push_str(&script()),
            _ => out.push_str(data),
        }
        rest = behind;
    }
    out + rest
}

fn script() -> String {
    format!("\"use strict\";\n{}", SCRIPTS.concat())
}

fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'",
        hash(&script()),
        hash(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Read;

    #[test]
    fn stored_text_cannot_close_the_element_that_holds_it() {
        let data = json!({"title": "</script><script>alert(1)</script>", "é": "\u{2028}"});
        let page = filled(&policy(), &STANDARD.encode(compressed(&data).unwrap()));
        assert_eq!(page.matches("<script").count(), 2, "the data and the page's own script");
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("alert(1)"));
    }

    #[test]
    fn the_data_comes_back_as_it_was() {
        let data = json!({"a": ["ä", 1, null]});
        let page = filled(&policy(), &STANDARD.encode(compressed(&data).unwrap()));
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let packed = STANDARD.decode(rest.split_once('<').unwrap().0).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), data);
    }

    #[test]
    fn the_page_names_no_other_host() {
        for (name, text) in [("page", HTML), ("style", STYLE), ("script", &script())] {
            let urls = text.matches("://").count() - text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(urls, 0, "{name} names an address");
        }
    }
}
