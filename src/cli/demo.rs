//! `nmem demo`: plays recorded sessions through the real hooks, in a temporary folder.

use super::output;
use crate::files;
use crate::render::style::Style;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Two sessions as Claude Code sent them, one event per line; `$PROJECT` is replaced by the folder.
const SESSIONS: &str = include_str!("demo/sessions.jsonl");

/// Play two recorded sessions through the hooks and show the result
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem demo\n\nThe demo runs in a temporary folder with its own database. Your data is not touched."
)]
pub struct DemoArguments {
    /// Keep the folder and print its path
    #[arg(long)]
    keep: bool,
}

/// A home, a project and a database in one temporary folder.
struct Stage {
    folder: PathBuf,
    kept: bool,
}

impl Stage {
    fn set(kept: bool) -> Result<Stage> {
        let folder = std::env::temp_dir().join(format!("nmem-demo-{}", std::process::id()));
        fs::create_dir_all(folder.join("home")).with_context(|| format!("cannot make {}", folder.display()))?;
        let folder = files::canonical(&folder)?;
        let project = folder.join("shop");
        fs::create_dir_all(project.join(".git"))?;
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(project.join(".git/config"), "[remote \"origin\"]\n\turl = https://example.org/demo/shop.git\n")?;
        fs::write(folder.join("config.toml"), "")?;
        Ok(Stage { folder, kept })
    }

    fn project(&self) -> PathBuf {
        self.folder.join("shop")
    }

    /// Runs this binary as an agent would: a new process with the event on stdin.
    fn run(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        let mut command = Command::new(std::env::current_exe().context("cannot determine the path of this binary")?);
        command.args(args).current_dir(self.project()).env_clear().env("HOME", self.folder.join("home"));
        command.env("NMEM_DB", self.folder.join("nmem.db")).env("NMEM_CONFIG", self.folder.join("config.toml"));
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() }).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the hook")?;
        if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
            pipe.write_all(text.as_bytes())?;
        }
        let out = child.wait_with_output()?;
        if !out.status.success() {
            bail!("`nmem {}` failed with {}", args.join(" "), out.status);
        }
        // In the order in which a terminal shows them.
        let text = [String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)].concat();
        Ok(text.trim_end().to_string())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Runs the command.
pub fn run(args: &DemoArguments) -> Result<()> {
    let stage = Stage::set(args.keep)?;
    let style = output::style();
    let milliseconds = play(&stage)?;
    let median = milliseconds.get(milliseconds.len() / 2).copied().unwrap_or(0.0);
    output::say(&format!(
        "{} hook events of two recorded Claude Code sessions went through `nmem record`, one process each, {median:.1} ms on median.\n",
        milliseconds.len()
    ))?;
    for command in [&["log"][..], &["search", "half", "a", "cent", "-n", "2"], &["status"]] {
        let text = stage.run(command, None)?;
        let text = if command == ["status"] { brief(&text) } else { text };
        show(style, &format!("$ nmem {}", command.join(" ")), &text)?;
    }
    show(style, "The next session receives this before its first prompt:", &stage.run(&["context"], None)?)?;
    output::say(&format!("Install it into Claude Code: {}", style.strong("nmem install claude-code")))?;
    output::say(&format!("Read the sessions that are on this machine: {}", style.strong("nmem import")))?;
    if args.keep {
        output::say(&format!("The folder was kept: {}", stage.folder.display()))?;
    }
    Ok(())
}

/// Sends every event; returns how long each took, sorted.
fn play(stage: &Stage) -> Result<Vec<f64>> {
    let project = json_escaped(&stage.project());
    let mut milliseconds = Vec::new();
    for line in SESSIONS.lines() {
        let event = line.replace("$PROJECT", &project);
        let begun = Instant::now();
        stage.run(&["record"], Some(&event))?;
        milliseconds.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    milliseconds.sort_by(f64::total_cmp);
    Ok(milliseconds)
}

fn json_escaped(path: &Path) -> String {
    Value::from(path.display().to_string()).to_string().trim_matches('"').to_string()
}

/// Returns the database part of the status; hooks and settings of the temporary folder are of no interest.
fn brief(status: &str) -> String {
    status.split("\n\n").find(|part| part.starts_with("database")).unwrap_or_default().to_string()
}

fn show(style: Style, title: &str, text: &str) -> Result<()> {
    let indented: Vec<String> = text.lines().map(|l| format!("  {l}").trim_end().to_string()).collect();
    output::say(&format!("{}\n{}\n", style.strong(title), indented.join("\n")))
}
