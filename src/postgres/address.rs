//! The address and encryption of the server: TLS with a verified certificate, unless it is on this machine.

use crate::error::UserError;
use crate::files;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Maximum bytes of a file with certificates.
const CERTIFICATES: u64 = 4 << 20;
/// Parameters of libpq that are handled here, since the driver does not know them.
const OWN: [&str; 2] = ["sslmode", "sslrootcert"];

/// A server's address.
pub struct Address {
    config: Config,
    /// `None`: the server is on this machine, and needs no TLS.
    tls: Option<MakeRustlsConnect>,
    /// The host for display, without user and password.
    pub host: String,
}

impl Address {
    /// Parses a URL in the form of libpq.
    ///
    /// # Errors
    ///
    /// Not a PostgreSQL URL, or one that asks for no encryption to another machine. No error repeats the URL, which may
    /// contain a password.
    pub fn parse(url: &str, certificates: Option<&Path>) -> Result<Address> {
        let hint = "it is like postgresql://user:password@host/database";
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let parameters = form_urlencoded::parse(query.as_bytes()).into_owned();
        let (own, rest): (Vec<_>, Vec<_>) = parameters.partition(|(name, _)| OWN.contains(&name.as_str()));
        let own = |wanted: &str| own.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let mut plain = base.to_string();
        if !rest.is_empty() {
            plain += "?";
            plain += &form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish().replace('+', "%20");
        }
        let mut config: Config =
            plain.parse().map_err(|_| UserError::usage("RAD_DATABASE_URL is not a URL of PostgreSQL", hint))?;
        config.application_name("nmem");
        let hosts = config.get_hosts().to_vec();
        let host = hosts.iter().map(name).collect::<Vec<_>>().join(", ");
        if hosts.is_empty() {
            return Err(UserError::usage("RAD_DATABASE_URL names no host", hint).into());
        }
        let is_here = hosts.iter().all(is_on_this_machine) && config.get_hostaddrs().iter().all(|address| address.is_loopback());
        let mode = own("sslmode").unwrap_or(if is_here { "disable" } else { "verify-full" });
        if !is_here && matches!(mode, "disable" | "allow" | "prefer") {
            let what = format!("RAD_DATABASE_URL asks for sslmode={mode}, but {host} is another machine");
            return Err(UserError::new(what, "remove sslmode: nmem verifies the server's certificate").into());
        }
        if mode == "disable" || is_here && matches!(mode, "allow" | "prefer") {
            config.ssl_mode(SslMode::Disable);
            return Ok(Address { config, tls: None, host });
        }
        config.ssl_mode(SslMode::Require);
        let named = own("sslrootcert").map(PathBuf::from);
        let tls = tls(named.as_deref().or(certificates))?;
        Ok(Address { config, tls: Some(tls), host })
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        // The connection's task ends with the runtime, which ends with the command.
        match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(connection);
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(connection);
                Ok(client)
            }
        }
    }
}

fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Trusts the certificates in a file, or else those that browsers trust.
fn tls(certificates: Option<&Path>) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match certificates {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let text = files::whole_text(path, CERTIFICATES).with_context(|| format!("cannot read {}", path.display()))?;
            for certificate in pem(&text) {
                roots.add(CertificateDer::from(certificate)).with_context(|| format!("a certificate in {}", path.display()))?;
            }
            if roots.is_empty() {
                let what = format!("{} holds no certificate", path.display());
                return Err(UserError::new(what, "give a PEM file with the certificate that signs the server's").into());
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The certificates of a PEM file.
fn pem(text: &str) -> Vec<Vec<u8>> {
    let blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    let inside = blocks.filter_map(|block| block.split("-----END CERTIFICATE-----").next());
    inside.filter_map(|block| STANDARD.decode(block.split_whitespace().collect::<String>()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<(String, bool), String> {
        Address::parse(url, None).map(|address| (address.host, address.tls.is_some())).map_err(|error| error.to_string())
    }

    #[cfg(unix)]
    #[test]
    fn another_machine_is_reached_by_tls_only() {
        assert_eq!(parsed("postgresql://me:pw@db.example.org/rad").unwrap(), ("db.example.org".into(), true));
        assert_eq!(parsed("postgresql://me@localhost/rad").unwrap(), ("localhost".into(), false));
        assert_eq!(parsed("postgresql://me@%2Ftmp%2Fsocket/rad").unwrap(), ("/tmp/socket".into(), false));
        assert_eq!(parsed("postgresql:///rad?host=/tmp/socket").unwrap(), ("/tmp/socket".into(), false));
        assert_eq!(parsed("postgresql://me@127.0.0.1/rad?sslmode=require").unwrap(), ("127.0.0.1".into(), true));
        for mode in ["disable", "allow", "prefer"] {
            let error = parsed(&format!("postgresql://me:secret@db.example.org/rad?sslmode={mode}")).unwrap_err();
            assert!(error.contains("db.example.org is another machine") && !error.contains("secret"), "{error}");
        }
        let two = parsed("postgresql://me@localhost,db.example.org/rad").unwrap();
        assert!(two.1, "one host elsewhere is enough");
    }

    #[test]
    fn an_invalid_url_is_named_without_its_password() {
        for url in
            ["postgresql://me:hunter2@[", "mysql://me:hunter2@host/x", "hunter2", "postgresql://me:hunter2@host:99999999/x"]
        {
            let error = parsed(url).unwrap_err();
            assert!(error.contains("RAD_DATABASE_URL") && !error.contains("hunter2"), "{error}");
        }
    }
}
