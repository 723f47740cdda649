//! Access control. Any page that a browser shows can send requests to the loopback interface, and so can other users of
//! the machine. So each request must name this server as its host, must not come from another origin, and must carry a
//! cookie or a token.
//!
//! A launch token opens the page once and sets the cookie. It appears in a URL, so it is invalid afterwards. The cookie
//! is valid as long as the server runs. Programs send the bearer token, which does not open the page.

use crate::files::random_token;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN};
use sha2::{Digest, Sha256};
use std::sync::Mutex;

/// Maximum unused launch tokens; the oldest is dropped first.
const LAUNCHES: usize = 8;

/// Checks requests.
#[derive(Debug)]
pub struct Access {
    port: u16,
    launches: Mutex<Vec<String>>,
    cookie: String,
    bearer: String,
}

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// A browser that opened a launch URL.
    Page,
    /// A program with the bearer token.
    Program,
    Unknown,
}

/// Reason to refuse a request before its sender is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request names another host: a page whose name resolves to this machine.
    Host,
    /// The request comes from a page of another origin.
    Origin,
}

impl Access {
    pub fn new(port: u16, bearer: String) -> Access {
        Access { port, launches: Mutex::default(), cookie: random_token(), bearer }
    }

    /// A URL with a new launch token.
    pub fn launch_url(&self) -> String {
        let token = random_token();
        if let Ok(mut launches) = self.launches.lock() {
            launches.push(token.clone());
            let over = launches.len().saturating_sub(LAUNCHES);
            launches.drain(..over);
        }
        format!("http://127.0.0.1:{}/?token={token}", self.port)
    }

    /// Uses up a launch token; returns the cookie to set.
    pub fn launch(&self, token: &str) -> Option<String> {
        let mut launches = self.launches.lock().ok()?;
        let at = launches.iter().position(|known| equal(known, token))?;
        launches.remove(at);
        Some(format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.cookie))
    }

    /// Returns the name of the cookie. All ports of a host share cookies, so the port is part of the name.
    fn cookie_name(&self) -> String {
        format!("nmem-{}", self.port)
    }

    /// Checks the origin of a request. `authority` is the host in its URI, if it names one; `is_navigation` is true if
    /// it opens the page itself, which contains no data.
    pub fn refusal(&self, headers: &HeaderMap, authority: Option<&str>, is_navigation: bool) -> Option<Refusal> {
        let any = |name: &str, is_bad: &dyn Fn(&str) -> bool| {
            headers.get_all(name).iter().any(|value| is_bad(value.to_str().unwrap_or("\u{fffd}")))
        };
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let mut named = headers.get_all(HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok()).filter(|_| named.next().is_none());
        let Some(host) = host.filter(|host| hosts.iter().any(|own| own == host)) else { return Some(Refusal::Host) };
        if authority.is_some_and(|named| named != host) {
            return Some(Refusal::Host);
        }
        if any(ORIGIN.as_str(), &|origin| origin != format!("http://{host}")) {
            return Some(Refusal::Origin);
        }
        let elsewhere = any("sec-fetch-site", &|site| site != "same-origin" && site != "none");
        (elsewhere && !is_navigation).then_some(Refusal::Origin)
    }

    /// Identifies the sender, by cookie or bearer token.
    pub fn caller(&self, headers: &HeaderMap) -> Requester {
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| value.split_once(' '));
        if bearer.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && equal(token.trim(), &self.bearer)) {
            return Requester::Program;
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        let mut pairs = cookies.filter_map(|pair| pair.trim().split_once('='));
        match pairs.any(|(own, value)| own == name && equal(value, &self.cookie)) {
            true => Requester::Page,
            false => Requester::Unknown,
        }
    }
}

/// Compares two texts; the duration does not reveal how much of them is equal.
fn equal(a: &str, b: &str) -> bool {
    Sha256::digest(a) == Sha256::digest(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        all.iter().map(pair).collect()
    }

    #[test]
    fn a_launch_token_opens_once_and_the_cookie_again_and_again() {
        let access = Access::new(38888, "b".into());
        let url = access.launch_url();
        let token = url.split_once("token=").unwrap().1;
        let cookie = access.launch(token).unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        assert_eq!(access.launch(token), None);
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(access.caller(&headers(&[("cookie", &format!("other=1; {pair}"))])), Requester::Page);
        assert_eq!(access.caller(&headers(&[("cookie", "nmem-38888=no")])), Requester::Unknown);
    }

    #[test]
    fn the_bearer_token_is_a_programs() {
        let access = Access::new(1, "secret".into());
        assert_eq!(access.caller(&headers(&[("authorization", "Bearer secret")])), Requester::Program);
        assert_eq!(access.caller(&headers(&[("authorization", "Bearer secre")])), Requester::Unknown);
        assert_eq!(access.caller(&headers(&[("authorization", "Basic secret")])), Requester::Unknown);
    }

    #[test]
    fn a_name_that_leads_here_and_a_page_of_elsewhere_are_refused() {
        let access = Access::new(38888, "b".into());
        let refusal = |all: &[(&'static str, &str)], opens: bool| access.refusal(&headers(all), None, opens);
        assert_eq!(refusal(&[("host", "127.0.0.1:38888")], false), None);
        assert_eq!(refusal(&[("host", "localhost:38888"), ("origin", "http://localhost:38888")], false), None);
        assert_eq!(refusal(&[("host", "evil.example:38888")], true), Some(Refusal::Host));
        assert_eq!(refusal(&[("host", "127.0.0.1")], false), Some(Refusal::Host));
        assert_eq!(refusal(&[], false), Some(Refusal::Host));
        let own = headers(&[("host", "127.0.0.1:38888")]);
        assert_eq!(access.refusal(&own, Some("evil.example:38888"), true), Some(Refusal::Host));
        assert_eq!(access.refusal(&own, Some("127.0.0.1:38888"), false), None);
        let mut twice = headers(&[("host", "localhost:38888"), ("origin", "http://localhost:38888")]);
        twice.append("origin", HeaderValue::from_static("http://evil.example"));
        assert_eq!(access.refusal(&twice, None, false), Some(Refusal::Origin));
        assert_eq!(refusal(&[("host", "localhost:38888"), ("origin", "http://localhost:3000")], false), Some(Refusal::Origin));
        assert_eq!(refusal(&[("host", "localhost:38888"), ("origin", "null")], true), Some(Refusal::Origin));
        // Another port of the same host is the same site for cookies, but not for us.
        assert_eq!(refusal(&[("host", "localhost:38888"), ("sec-fetch-site", "same-site")], false), Some(Refusal::Origin));
        assert_eq!(refusal(&[("host", "localhost:38888"), ("sec-fetch-site", "cross-site")], true), None);
    }
}
