//! `nmem serve` on a free port, and programs that ask it.

use super::World;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

pub struct Serving {
    pub child: Child,
    pub port: u16,
    /// Opens the page once.
    pub url: String,
    pub token: String,
}

/// An answer: status, headers, body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}\n{}", self.head, self.body))
    }
}

impl Serving {
    pub fn start(world: &World, args: &[&str]) -> Serving {
        let args = [&["serve", "--port", "0", "--no-open"], args].concat();
        let mut child = world.command(&args).stderr(Stdio::inherit()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_string();
        let port =
            url.split(['/', ':']).nth(4).and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port in {url:?}"));
        let token = world.nmem(&["serve", "--print-token"]).stdout.trim().to_string();
        Serving { child, port, url, token }
    }

    /// The cookie that the launch URL sets.
    pub fn cookie(&self) -> String {
        let path = self.url.split_once(&format!(":{}", self.port)).unwrap().1;
        let answer = self.raw(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", self.port));
        let line =
            answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap_or_else(|| panic!("{}", answer.head));
        line.split(';').next().unwrap().to_string()
    }

    /// Sends bytes, and reads the answer until the line is closed.
    pub fn raw(&self, request: &str) -> Answer {
        let mut to = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = to.write_all(request.as_bytes());
        let mut read = Vec::new();
        let _ = to.read_to_end(&mut read);
        let text = String::from_utf8_lossy(&read).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_string(), body: body.to_string() }
    }

    /// A request with a token, a cookie or other headers, each line ending in `\r\n`.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = if method == "GET" {
            String::new()
        } else {
            format!("Content-Length: {}\r\nContent-Type: application/json\r\n", body.len())
        };
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{}\r\n", self.port) };
        self.raw(&format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{length}{headers}\r\n{body}"))
    }

    /// Answer to a program with the token.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &format!("Authorization: Bearer {}\r\n", self.token), "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &format!("Authorization: Bearer {}\r\n", self.token), &body.to_string())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
