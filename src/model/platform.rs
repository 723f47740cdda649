//! The platform of a session: the agent or editor in which the work happens.

use super::spelled::spelled;

spelled! {
/// The agent or editor in which the work happens.
Platform, default Custom {
    ClaudeCode = "claude-code",
    Codex = "codex",
    Cursor = "cursor",
    VsCode = "vscode",
    CopilotCli = "copilot-cli",
    Gemini = "gemini",
    OpenCode = "opencode",
    /// Any other program, through the RAD protocol.
    Custom = "custom",
}
}

impl Platform {
    /// Returns the display name.
    pub fn title(self) -> &'static str {
        match self {
            Platform::ClaudeCode => "Claude Code",
            Platform::Codex => "Codex",
            Platform::Cursor => "Cursor",
            Platform::VsCode => "VS Code",
            Platform::CopilotCli => "Copilot CLI",
            Platform::Gemini => "Gemini CLI",
            Platform::OpenCode => "OpenCode",
            Platform::Custom => "another program",
        }
    }
}
