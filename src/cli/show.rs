//! `nmem show`: one thing completely, with links to related ones.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::UserError;
use crate::lookup;
use crate::model::StoredItem;
use crate::recall::patterns::{Confidence, sure};
use crate::render::clean::line;
use crate::render::{memories, units, whole};
use crate::segmentation::signal_meaning;
use anyhow::Result;
use serde_json::{Value, json};

/// Show a memory, session, work unit, prompt or tool use completely
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem show m7\n\nIds: m7 is a memory, s14 a session, u3 a work unit, p12 a prompt, t345 a tool use. The first characters of the agent's session id or of a memory's uuid work too."
)]
pub struct ShowArguments {
    /// Its id, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &ShowArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let unknown = || {
        UserError::new(
            format!("nothing has the id {}", line(&args.id, 80)),
            "an id looks like m5, s14, u3, p12 or t345, and `nmem search` prints them; old tool uses are deleted (see retention in `nmem status --settings`), memories are not",
        )
    };
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = lookup::find(&store, &args.id)?.ok_or_else(unknown)?;
    let style = output::style();
    let text = match (found, args.json) {
        (StoredItem::Session(found), true) => lookup::session(&store, *found)?.json().to_string(),
        (StoredItem::Session(found), false) => lookup::session(&store, *found)?.text(style),
        (StoredItem::Unit(unit), json) => {
            let drawn = store.memories_of_unit(unit.session, unit.id)?;
            match json {
                true => units::whole_json(&unit, &drawn).to_string(),
                false => format!("{}{}", units::whole(&unit, signal_meaning, style), whole::listed(&drawn, style)),
            }
        }
        (StoredItem::Memory(memory), json) => {
            let sure = sure(&store, &memory)?;
            match json {
                true => with_confidence(memories::json(&memory), sure.as_ref()).to_string(),
                false => {
                    let sure = sure.map(|sure| format!("  {}\n", style.faint(&sure.text()))).unwrap_or_default();
                    format!("{}{sure}", memories::whole(&memory, style))
                }
            }
        }
        (StoredItem::Prompt(prompt), false) => whole::prompt_entry(&prompt, style),
        (StoredItem::Prompt(prompt), true) => lookup::prompt(&store, prompt)?.json().to_string(),
        (StoredItem::ToolUse(tool), json) => {
            let found = lookup::tool_use(&store, *tool)?;
            if json { found.json().to_string() } else { found.text(style) }
        }
    };
    output::entry(text.trim_end(), args.json)
}

fn with_confidence(mut json: Value, sure: Option<&Confidence>) -> Value {
    if let Some(sure) = sure {
        json["confidence_now"] = json!(sure.now);
        json["evidence"] = sure.evidence_json();
    }
    json
}
