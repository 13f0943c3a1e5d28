//! Encrypted connections: what the `tls-*` directives say, ready for listeners and for the link to a primary.
//!
//! Settings are made as a whole or not at all: as long as a file is bad, what was in use stays in use.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::tls::{
    Acceptor, ClientCertificates, ClientSettings, Connector, Identity, Rules, ServerSettings, SessionCache, Trusted,
    Verify,
};
use parking_lot::Mutex;

use crate::config::{Config, TlsAuthClients};
use crate::log;
use crate::process::log::Level;

/// What the reply to CONFIG SET says when settings cannot be used.
pub(crate) const NOT_UPDATED: &str = "Unable to update TLS configuration. Check server logs.";

/// Settings cannot be used; the log says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unusable;

/// What is in use, if anything.
#[derive(Default)]
pub(crate) struct Secure {
    in_use: Mutex<Option<(Arc<Acceptor>, Connector)>>,
}

impl Secure {
    /// Whether a configuration needs encrypted connections at all.
    pub(crate) fn is_needed(config: &Config) -> bool {
        config.tls_port != 0 || config.tls_replication || config.tls_cluster
    }

    /// Whether settings are in use.
    pub(crate) fn is_configured(&self) -> bool {
        self.in_use.lock().is_some()
    }

    /// Reads all files of a configuration and puts what they give in use.
    pub(crate) fn configure(&self, config: &Config) -> Result<(), Unusable> {
        let refuse = |why: String| {
            log!(Level::Warning, "{why}");
            Unusable
        };
        let server = server_settings(config).map_err(refuse)?;
        let client = client_settings(config, &server);
        let loaded = server.load().map_err(|error| refuse(error.to_string()))?;
        let connector = client.load().map_err(|error| refuse(error.to_string()))?;
        let mut in_use = self.in_use.lock();
        match in_use.as_mut() {
            Some((acceptor, old)) => {
                acceptor.replace(loaded);
                *old = connector;
            }
            None => *in_use = Some((Arc::new(Acceptor::new(loaded)), connector)),
        }
        Ok(())
    }

    /// What makes a listener's connections encrypted.
    pub(crate) fn acceptor(&self) -> Option<Arc<Acceptor>> {
        self.in_use.lock().as_ref().map(|(acceptor, _)| acceptor.clone())
    }

    /// What makes a connection to another server encrypted.
    pub(crate) fn connector(&self) -> Option<Connector> {
        self.in_use.lock().as_ref().map(|(_, connector)| connector.clone())
    }
}

fn path(value: &[u8]) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(value)))
}

fn identity(certificate: PathBuf, key: PathBuf, password: &[u8]) -> Identity {
    Identity { certificate, key, password: (!password.is_empty()).then(|| password.to_vec()) }
}

/// What the directives say of the server's side; the error is a line for the log.
fn server_settings(config: &Config) -> Result<ServerSettings, String> {
    let certificate = path(&config.tls_cert_file).ok_or("No tls-cert-file configured!")?;
    let key = path(&config.tls_key_file).ok_or("No tls-key-file configured!")?;
    let trusted = Trusted { file: path(&config.tls_ca_cert_file), directory: path(&config.tls_ca_cert_dir) };
    let client_certificates = match config.tls_auth_clients {
        TlsAuthClients::No => ClientCertificates::No,
        TlsAuthClients::Optional => ClientCertificates::Optional,
        TlsAuthClients::Yes => ClientCertificates::Required,
    };
    let needs_trust = client_certificates != ClientCertificates::No || config.tls_cluster || config.tls_replication;
    if needs_trust && trusted.file.is_none() && trusted.directory.is_none() {
        return Err(
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or \
                    tls-auth-clients are enabled!"
                .to_owned(),
        );
    }
    if !config.tls_dh_params_file.is_empty() {
        return Err(format!(
            "Failed to load DH params file: {}: key exchange with own Diffie-Hellman parameters is not supported (ECDHE is)",
            String::from_utf8_lossy(&config.tls_dh_params_file)
        ));
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Ok(ServerSettings {
        identity: identity(certificate, key, &config.tls_key_file_pass),
        trusted,
        client_certificates,
        rules: Rules {
            protocols: text(&config.tls_protocols),
            ciphers: text(&config.tls_ciphers),
            ciphersuites: text(&config.tls_ciphersuites),
        },
        prefers_own_order: config.tls_prefer_server_ciphers,
        cache: config.tls_session_caching.then(|| SessionCache {
            entries: usize::try_from(config.tls_session_cache_size).unwrap_or(0),
            life: Duration::from_secs(u64::try_from(config.tls_session_cache_timeout).unwrap_or(0)),
        }),
    })
}

/// What they say of connections to other servers: a certificate of their own, or that of the server's side.
fn client_settings(config: &Config, server: &ServerSettings) -> ClientSettings {
    let own = path(&config.tls_client_cert_file).zip(path(&config.tls_client_key_file));
    let own = own.map(|(certificate, key)| identity(certificate, key, &config.tls_client_key_file_pass));
    ClientSettings {
        identity: Some(own.unwrap_or_else(|| server.identity.clone())),
        trusted: server.trusted.clone(),
        rules: server.rules.clone(),
        sni: None,
        verify: Verify::Authority,
    }
}
