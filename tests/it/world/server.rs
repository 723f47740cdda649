//! A model on loopback, in both wire formats: it answers what a test wants, or behaves as badly.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Reaction of a server to a question.
#[derive(Clone)]
pub enum Reply {
    /// Answers in the form that the path asks for.
    Says(String),
    /// Answer of a function to the question.
    Depends(Arc<dyn Fn(&RenderedQuestion) -> Reply + Send + Sync>),
    /// A status, headers, a body.
    Raw(u16, &'static str, String),
    /// Vectors of the texts, as the function has them.
    Embeds(fn(&str) -> Vec<f32>),
    Hangs,
    /// A byte of an answer every tenth of a second.
    Trickles,
    /// A hundred megabytes.
    Floods,
    /// Half an answer, and the line is closed.
    ClosesEarly,
    /// After so long.
    Slowly(Duration, String),
}

/// A question as it came over the line.
#[derive(Clone, Debug)]
pub struct RenderedQuestion {
    pub headers: String,
    pub body: Value,
}

impl RenderedQuestion {
    /// The role that the model is given.
    pub fn system(&self) -> String {
        let system = self.body["system"][0]["text"].as_str().or(self.body["messages"][0]["content"].as_str());
        system.unwrap_or_default().to_string()
    }

    /// Its input.
    pub fn user(&self) -> String {
        let messages = self.body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_string()
    }
}

pub struct Server {
    pub port: u16,
    pub asked: Arc<Mutex<Vec<RenderedQuestion>>>,
    reply: Arc<Mutex<Reply>>,
}

impl Server {
    pub fn new(reply: Reply) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, reply) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(reply)));
        let (received, replies) = (Arc::clone(&asked), Arc::clone(&reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (received, replies) = (Arc::clone(&received), Arc::clone(&replies));
                // A client that gives up is no error here.
                std::thread::spawn(move || drop(serve(stream, &received, &replies)));
            }
        });
        Server { port, asked, reply }
    }

    pub fn now(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub fn last(&self) -> RenderedQuestion {
        self.asked.lock().unwrap().last().expect("nothing was asked").clone()
    }

    /// The lines of a config file that name it as the one who knows what texts mean.
    pub fn embeddings(&self) -> String {
        format!("[embeddings]\nbase_url = \"http://127.0.0.1:{}/v1\"\nmodel = \"thesaurus\"\n", self.port)
    }

    /// The lines of a config file that name it.
    pub fn config(&self, provider: &str) -> String {
        let path = if provider == "openai" { "/v1" } else { "" };
        format!(
            "[llm]\nprovider = \"{provider}\"\nbase_url = \"http://127.0.0.1:{}{path}\"\nmodel = \"test-model\"\napi_key_env = \"TEST_KEY\"\nstop_seconds = 2\n",
            self.port
        )
    }
}

fn serve(stream: TcpStream, received: &Mutex<Vec<RenderedQuestion>>, replies: &Mutex<Reply>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = headers.split_whitespace().nth(1).unwrap_or_default().to_string();
    let asked = RenderedQuestion { headers, body: serde_json::from_slice(&body).unwrap_or_default() };
    received.lock().unwrap().push(asked.clone());
    let mut reply = replies.lock().unwrap().clone();
    if let Reply::Depends(decide) = &reply {
        reply = decide(&asked);
    }
    let send = |stream: &mut TcpStream, status: u16, more: &str, body: &str| {
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n{body}", body.len())
    };
    match reply {
        Reply::Depends(_) => panic!("a reply that depends on the question leads to another one that does"),
        Reply::Says(text) => send(&mut stream, 200, "", &wire(&path, &text)),
        Reply::Embeds(vector) => {
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let texts = body["input"].as_array().into_iter().flatten().enumerate();
            let data: Vec<Value> =
                texts.map(|(index, text)| json!({"index": index, "embedding": vector(text.as_str().unwrap())})).collect();
            // In another order than they were asked for: the index says which is which.
            let data: Vec<Value> = data.into_iter().rev().collect();
            send(&mut stream, 200, "", &json!({"data": data, "usage": {"prompt_tokens": 10}}).to_string())
        }
        Reply::Slowly(wait, text) => {
            std::thread::sleep(wait);
            send(&mut stream, 200, "", &wire(&path, &text))
        }
        Reply::Raw(status, more, body) => send(&mut stream, status, more, &body),
        Reply::Hangs => {
            std::thread::sleep(Duration::from_secs(20));
            Ok(())
        }
        Reply::Trickles => {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")?;
            for _ in 0..200 {
                stream.write_all(b" ")?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }
        Reply::Floods => {
            write!(stream, "HTTP/1.1 200 OK\r\n\r\n")?;
            let piece = vec![b'x'; 1 << 20];
            (0..100).try_for_each(|_| stream.write_all(&piece))
        }
        Reply::ClosesEarly => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{{\"content\": [{{\"te"),
    }
}

fn wire(path: &str, text: &str) -> String {
    match path.ends_with("/messages") {
        true => json!({"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1000, "output_tokens": 200}}),
        false => json!({"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 1000, "completion_tokens": 200}}),
    }
    .to_string()
}
