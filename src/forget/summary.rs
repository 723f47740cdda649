//! Summary of a plan, shown to the user before anything is forgotten.

use super::ForgetPlan;
use crate::render;
use crate::render::clean::line;
use std::path::PathBuf;

/// Maximum projects and sessions to name.
const NAMED: usize = 10;

impl ForgetPlan {
    /// Returns a few lines about what would be deleted, or will be; `from` names the database if there are several.
    pub fn summary(&self, dry_run: bool, from: &str) -> String {
        let count = |n: usize, one: &str, many: &str| render::count(n as i64, one, many);
        let going = &self.going;
        let mut out = format!("{}{from}:\n", if dry_run { "This would be deleted" } else { "This will be deleted" });
        if !going.projects.is_empty() {
            let names: Vec<String> = going.project_names.iter().take(NAMED).map(|name| line(name, 60)).collect();
            out += &format!("  {}: {}\n", count(going.projects.len(), "whole project", "whole projects"), names.join(", "));
        }
        if !going.sessions.is_empty() {
            let names: Vec<String> = going.sessions.iter().take(NAMED).map(|id| format!("s{id}")).collect();
            let more = if going.sessions.len() > NAMED { ", …" } else { "" };
            out += &format!("  {}: {}{more}\n", count(going.sessions.len(), "whole session", "whole sessions"), names.join(", "));
        }
        for (id, text) in &self.examples {
            out += &format!("  {id:<5} {}\n", line(text, 100));
        }
        let parts = [
            (going.prompts.len(), "prompt or answer", "prompts and answers"),
            (going.tool_uses.len(), "tool use", "tool uses"),
            (going.memories.len(), "memory", "memories"),
            (going.task_lists.len(), "entry of a task list", "entries of task lists"),
        ];
        for (n, one, many) in parts.into_iter().filter(|(n, ..)| *n > 0) {
            out += &format!("  {}\n", count(n, one, many));
        }
        if going.drawn > 0 {
            let drawn = count(going.drawn, "memory", "memories");
            out += &format!("  {drawn} derived from them, unless the remaining data still supports them\n");
        }
        for (path, n) in &self.lines {
            out += &format!("  {} of {}\n", count(*n, "line", "lines"), path.display());
        }
        let companion = |path: &&PathBuf| ["-wal", "-shm", "-journal"].iter().any(|end| path.to_string_lossy().ends_with(end));
        for path in self.set_aside.iter().filter(|path| !companion(path)) {
            out += &format!("  {} (a broken database that was set aside; its content cannot be examined)\n", path.display());
        }
        out.trim_end().to_string()
    }
}
