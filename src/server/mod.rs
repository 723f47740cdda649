//! The page over HTTP. Files: `access` (who may ask), `routes` (answers), `state` (listening pages, and what changes for them).

mod access;
mod routes;
mod state;

pub use state::Served;

use crate::config::Config;
use crate::error::UserError;
use crate::files;
use access::Access;
use anyhow::{Context, Result};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use state::ServerState;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum open connections; others wait until one is closed.
const CONNECTIONS: usize = 512;
/// Time limit for a client to send a request's head, or to stay idle between two requests.
const HEAD: Duration = Duration::from_secs(3);
/// Maximum bytes of a request's head.
const HEAD_BYTES: usize = 32 << 10;

/// A server that is bound to its port.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    state: Arc<ServerState>,
}

/// Returns the bearer token for programs, from a private file next to the database; the first call creates it.
pub fn bearer_token(config: &Config) -> Result<String> {
    let path = config.files.value.folder().join("serve-token");
    let key = files::own_key(&path).with_context(|| format!("cannot read or create {}", path.display()))?;
    Ok(key.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    /// Binds a port of the loopback interface; 0 for a free one.
    ///
    /// # Errors
    ///
    /// A [`UserError`] if the port is taken.
    pub fn bind(port: u16, served: Served) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                UserError::new(format!("port {port} is taken, perhaps by another `nmem serve`"), "--port 0 takes a free port")
                    .into()
            }
            _ => anyhow::Error::from(error).context(format!("cannot listen on 127.0.0.1:{port}")),
        })?;
        listener.set_nonblocking(true)?;
        let access = Access::new(listener.local_addr()?.port(), bearer_token(&served.config)?);
        let state = ServerState::new(served, access);
        Ok(Server { listener, state: Arc::new(state) })
    }

    /// Returns a URL that opens the page once; afterwards a cookie identifies the browser.
    pub fn launch_url(&self) -> String {
        self.state.access.launch_url()
    }

    /// Returns a function that makes further launch URLs on other threads.
    pub fn launcher(&self) -> impl Fn() -> String + Send + 'static {
        let state = Arc::clone(&self.state);
        move || state.access.launch_url()
    }

    /// Serves until the process ends.
    pub fn run(self) -> Result<()> {
        let Server { listener, state } = self;
        let watched = Arc::clone(&state);
        std::thread::Builder::new().name("watch".into()).spawn(move || state::watch(&watched.served, &watched.listeners))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(accept(listener, state))
    }
}

async fn accept(listener: TcpListener, state: Arc<ServerState>) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let http = {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES).max_headers(64);
        Arc::new(http)
    };
    loop {
        let place = Arc::clone(&connections).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: some connection will end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (state, http) = (Arc::clone(&state), Arc::clone(&http));
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(routes::answer(&state, request).await) }
            });
            // Errors of a client that disconnects or does not send HTTP are ignored.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}
