//! `[embeddings]`: the model that computes embeddings. Off while no address is set. As with `[llm]`, only the user's
//! config file can switch it on.

use super::environment;
use super::llm::{check_url, host, is_loopback};
use super::setting::{Setting, SettingSource};
use super::value::{Wrong, text};
use crate::error::UserError;
use crate::model::{Endpoint, Provider};
use anyhow::Result;

/// The table `[embeddings]`.
#[derive(Clone, Debug)]
pub struct Embeddings {
    pub base_url: Setting<String>,
    pub model: Setting<String>,
    /// Name of the environment variable with the key, never the key itself.
    pub api_key_env: Setting<String>,
}

impl Default for Embeddings {
    fn default() -> Embeddings {
        let nothing = || Setting::default(String::new());
        Embeddings { base_url: nothing(), model: nothing(), api_key_env: nothing() }
    }
}

impl Embeddings {
    /// Reads the table; unknown keys are added to `unknown`.
    pub(super) fn read(&mut self, value: &toml::Value, unknown: &mut Vec<String>) -> Result<(), Wrong> {
        for (key, value) in value.as_table().ok_or("`embeddings` must be written as [embeddings]")? {
            let name = format!("embeddings.{key}");
            let setting = match key.as_str() {
                "base_url" => &mut self.base_url,
                "model" => &mut self.model,
                "api_key_env" => &mut self.api_key_env,
                _ => {
                    unknown.push(name);
                    continue;
                }
            };
            *setting = Setting { value: text(&name, value)?.trim().to_string(), source: SettingSource::File };
        }
        if !self.base_url.value.is_empty() {
            check_url(&self.base_url.value).map_err(|why| format!("`embeddings.base_url` {why}"))?;
        }
        Ok(())
    }

    /// Switches embeddings off for a folder.
    pub(super) fn switch_off(&mut self, source: SettingSource) {
        self.base_url = Setting { value: String::new(), source };
    }

    /// Returns the endpoint to which texts would be sent; `None` if embeddings are off.
    ///
    /// # Errors
    ///
    /// A [`UserError`] that names what is missing in the config file or the environment.
    pub fn endpoint(&self) -> Result<Option<Endpoint>> {
        let base_url = self.base_url.value.trim_end_matches('/').to_string();
        if base_url.is_empty() {
            return Ok(None);
        }
        if self.model.value.is_empty() {
            return Err(UserError::new("[embeddings] has no `model`", "write `model = \"…\"` into [embeddings]").into());
        }
        let is_loopback = is_loopback(&base_url);
        let name = Some(self.api_key_env.value.as_str()).filter(|name| !name.is_empty()).unwrap_or("OPENAI_API_KEY");
        let key = environment::secret(name);
        if key.is_none() && !is_loopback {
            let what =
                format!("no key for [embeddings]: {name} is not set, or is set by this project's settings, which nmem ignores");
            return Err(UserError::new(what, format!("set {name}, or name another variable in `api_key_env`")).into());
        }
        let proxy = if is_loopback { None } else { environment::proxy() };
        let model = self.model.value.clone();
        Ok(Some(Endpoint { provider: Provider::OpenAi, base_url, model, key, proxy, is_loopback, program: None }))
    }

    /// Returns the host to which texts would be sent, for display.
    pub fn destination(&self) -> Option<&str> {
        host(&self.base_url.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Embeddings, Wrong> {
        let mut embeddings = Embeddings::default();
        let table: toml::Table = text.parse().unwrap();
        embeddings.read(&toml::Value::Table(table), &mut Vec::new()).map(|()| embeddings)
    }

    #[test]
    fn it_is_off_until_an_address_and_a_model_are_named() {
        assert!(read("model = \"m\"").unwrap().endpoint().unwrap().is_none());
        assert!(read("base_url = \"http://127.0.0.1:1/v1\"").unwrap().endpoint().is_err());
        let local = read("base_url = \"http://127.0.0.1:1/v1/\"\nmodel = \"m\"\napi_key_env = \"NMEM_NO_SUCH\"").unwrap();
        assert_eq!(local.endpoint().unwrap().unwrap().base_url, "http://127.0.0.1:1/v1");
        let far = read("base_url = \"https://example.com/v1\"\nmodel = \"m\"\napi_key_env = \"NMEM_NO_SUCH\"").unwrap();
        assert!(far.endpoint().unwrap_err().to_string().contains("NMEM_NO_SUCH is not set"));
        assert!(read("base_url = \"http://example.com\"").unwrap_err().starts_with("`embeddings.base_url` must be https"));
    }
}
