//! Headless Chromium, driven through ChromeDriver (Debian: `chromium`, `chromium-driver`) in the W3C WebDriver protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a page to show something.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
}

impl Browser {
    /// A browser with a fresh profile in `folder`; `None`, said loudly, where there is none.
    pub fn open(folder: &Path) -> Option<Browser> {
        let missing = |why: &str| {
            eprintln!("PASSED OVER: {why}, so the page was not tried in a browser (Debian: chromium, chromium-driver)");
            None
        };
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else { return missing("there is no chromedriver here") };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok());
        let Some(port) = port else { return missing("chromedriver does not start") };
        std::thread::spawn(move || lines.for_each(drop));
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
            // A name that leads to this machine, as DNS rebinding makes one.
            "--host-resolver-rules=MAP evil.example 127.0.0.1",
            &profile,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args, "prefs": {}}, "goog:loggingPrefs": {"browser": "ALL"}
        }}});
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).proxy(None).timeout_global(Some(Duration::from_secs(60)));
        let mut browser = Browser { driver, session: format!("http://127.0.0.1:{port}/session"), agent: config.build().into() };
        let begun = browser.call("", wanted);
        let Some(id) = begun["sessionId"].as_str() else { return missing(&format!("Chromium does not start ({begun})")) };
        browser.session = format!("{}/{id}", browser.session);
        Some(browser)
    }

    fn call(&self, path: &str, body: Value) -> Value {
        let answer =
            self.agent.post(&format!("{}{path}", self.session)).header("Content-Type", "application/json").send(body.to_string());
        let text = answer.unwrap().body_mut().read_to_string().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        value["value"].clone()
    }

    pub fn go(&self, url: &str) {
        self.call("/url", json!({"url": url}));
    }

    /// The value of a JavaScript expression on the page.
    pub fn value(&self, expression: &str) -> Value {
        let found = self.call("/execute/sync", json!({"script": format!("return {expression}"), "args": []}));
        assert!(found["error"].is_null(), "{expression}: {found}");
        found
    }

    /// Waits until an expression is true; returns how long it took.
    pub fn until(&self, expression: &str) -> Duration {
        let begun = Instant::now();
        while self.value(&format!("Boolean({expression})")) != json!(true) {
            assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {expression}\n{}", self.text("body"));
            std::thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    }

    pub fn text(&self, css: &str) -> String {
        let text = self.value(&format!("document.querySelector({})?.innerText ?? ''", json!(css)));
        text.as_str().unwrap_or_default().to_string()
    }

    /// Clicks as a person does: what is covered or not there cannot be clicked.
    pub fn click(&self, css: &str) {
        let click = || self.call(&format!("/element/{}/click", self.element(css)), json!({}));
        // News may replace the element between the two requests.
        let done = [(); 3].iter().map(|()| click()).find(|done| done["error"] != "stale element reference");
        assert!(done.as_ref().is_some_and(Value::is_null), "{css}: {done:?}");
    }

    /// Types into a field, in the place of what was there.
    pub fn fill(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.call(&format!("/element/{element}/clear"), json!({}));
        self.call(&format!("/element/{element}/value"), json!({"text": text}));
    }

    /// Presses keys on the page.
    pub fn press(&self, keys: &str) {
        let body = self.element("body");
        self.call(&format!("/element/{body}/value"), json!({"text": keys}));
    }

    fn element(&self, css: &str) -> String {
        self.until(&format!("document.querySelector({})", json!(css)));
        let found = self.call("/element", json!({"using": "css selector", "value": css}));
        let id = found.as_object().and_then(|fields| fields.values().next()).and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("{css}: {found}")).to_string()
    }

    /// Errors and warnings on the console since the last call.
    pub fn console(&self) -> Vec<String> {
        let log = self.call("/se/log", json!({"type": "browser"}));
        let lines = log.as_array().cloned().unwrap_or_default();
        lines
            .iter()
            .filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG")
            .map(|line| line["message"].to_string())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
