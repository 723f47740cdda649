//! A client of `nmem mcp`: JSON-RPC over its pipes, a message a line.

use super::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: i64,
    /// Fields that each request carries since the revision of 2026-07-28.
    meta: Option<Value>,
}

impl McpClient {
    /// A client that shakes hands, as all did until 2026-07-28.
    pub fn of(world: &World) -> McpClient {
        let mut client = McpClient::start(world);
        let hello = client.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "nmem", "{hello}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// A client without a handshake: each request says which revision it speaks.
    pub fn stateless(world: &World) -> McpClient {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}});
        McpClient { meta: Some(meta), ..McpClient::start(world) }
    }

    pub fn start(world: &World) -> McpClient {
        McpClient::with(world, &["mcp"])
    }

    pub fn with(world: &World, arguments: &[&str]) -> McpClient {
        let mut child = world.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        McpClient { child, stdin, stdout, last: 0, meta: None }
    }

    pub fn write(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request; returns its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> i64 {
        self.last += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string());
        self.last
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool; returns its text and its structured content.
    pub fn call(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.to_string().len() <= 4096, "{} bytes of {tool}", result.to_string().len());
        (
            result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_string(),
            result["structuredContent"].clone(),
        )
    }

    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).0
    }

    /// Closes the pipe; returns what else came, and the exit code.
    pub fn close(mut self) -> (String, Option<i32>) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}
