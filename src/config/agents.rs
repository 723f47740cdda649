//! Folders of agents' sessions and settings on this machine.

use super::environment::{
    claude_folder, codex_folder, copilot_folder, cursor_folders, gemini_folder, opencode_data_folder, opencode_folder,
    vs_code_folders,
};
use crate::model::Platform;
use std::path::{Path, PathBuf};

/// The folders below which an agent keeps its sessions, whether they exist or not.
pub fn session_folders(platform: Platform, home: Option<&Path>) -> Vec<PathBuf> {
    match platform {
        Platform::ClaudeCode => claude_folder(home).into_iter().collect(),
        Platform::Codex => codex_folder(home).into_iter().collect(),
        Platform::Cursor => cursor_folders(home),
        Platform::VsCode => vs_code_folders(home),
        Platform::CopilotCli => copilot_folder(home).into_iter().collect(),
        Platform::Gemini => gemini_folder(home).into_iter().collect(),
        Platform::OpenCode => opencode_data_folder(home).into_iter().collect(),
        Platform::Custom => Vec::new(),
    }
}

/// Returns the folder in which an agent looks for the user's hooks; `None` if the agent has no hooks or the home folder
/// is unknown.
pub fn settings_folder(platform: Platform, home: Option<&Path>) -> Option<PathBuf> {
    match platform {
        Platform::ClaudeCode => claude_folder(home),
        Platform::Codex => codex_folder(home),
        Platform::Cursor => cursor_folders(home).into_iter().next(),
        // VS Code reads the hooks of Copilot CLI.
        Platform::VsCode | Platform::CopilotCli => copilot_folder(home),
        Platform::Gemini => gemini_folder(home),
        Platform::OpenCode => opencode_folder(home),
        Platform::Custom => None,
    }
}
