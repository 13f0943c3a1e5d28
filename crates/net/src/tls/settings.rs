//! What can be set, and what is made of it.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::trust::{Anchors, ClientCheck, ServerCheck};
use super::{cache, files, suites};

/// A certificate and its key.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// File of the certificate, and of those between it and the authority.
    pub certificate: PathBuf,
    /// File of the key.
    pub key: PathBuf,
    /// Password of the key, if it is encrypted.
    pub password: Option<Vec<u8>>,
}

/// Where the certificates of trusted authorities are.
#[derive(Clone, Debug, Default)]
pub struct Trusted {
    /// A file with all of them.
    pub file: Option<PathBuf>,
    /// A directory with files of them.
    pub directory: Option<PathBuf>,
}

/// Versions and ciphers, in OpenSSL's words; empty: all.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `tls-protocols`.
    pub protocols: String,
    /// `tls-ciphers`: up to TLS 1.2.
    pub ciphers: String,
    /// `tls-ciphersuites`: TLS 1.3.
    pub ciphersuites: String,
}

/// Whether clients must show a certificate (`tls-auth-clients`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked.
    No,
    /// One that is shown must be good.
    Optional,
    /// They must show a good one.
    Required,
}

/// How many sessions are remembered and how long.
#[derive(Clone, Copy, Debug)]
pub struct SessionCache {
    /// The most of them; 0 is no limit.
    pub entries: usize,
    /// How long one is remembered.
    pub life: Duration,
}

/// All that a server's side needs.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What it shows.
    pub identity: Identity,
    /// Whom it trusts.
    pub trusted: Trusted,
    /// What it asks of clients.
    pub client_certificates: ClientCertificates,
    /// Versions and ciphers.
    pub rules: Rules,
    /// Its own order of ciphers counts, not the client's.
    pub prefers_own_order: bool,
    /// Sessions that can be taken up again, if any.
    pub cache: Option<SessionCache>,
}

/// What a client checks of the server's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing (`--insecure`).
    Nothing,
    /// That a trusted authority stands behind it.
    #[default]
    Authority,
    /// That too, and that it was made for this host.
    Host(String),
}

/// All that a client's side needs.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// What it shows, if anything.
    pub identity: Option<Identity>,
    /// Whom it trusts; nothing set means the authorities of the system.
    pub trusted: Trusted,
    /// Versions and ciphers.
    pub rules: Rules,
    /// The host name it tells the server.
    pub sni: Option<String>,
    /// What it checks.
    pub verify: Verify,
}

/// What is wrong with settings; displayed as the line that Redis logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The certificate: its file and why.
    Certificate(PathBuf, String),
    /// The key: its file and why.
    Key(PathBuf, String),
    /// The trusted authorities: why.
    Trusted(String),
    /// The versions: a whole sentence.
    Protocols(String),
    /// Ciphers: what was asked for and why not.
    Ciphers(String, String),
    /// Suites of TLS 1.3: what was asked for and why not.
    Ciphersuites(String, String),
    /// The host name.
    Host(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Certificate(path, why) => {
                write!(f, "Failed to load certificate: {}: {why}", path.display())
            }
            SettingsError::Key(path, why) => write!(f, "Failed to load private key: {}: {why}", path.display()),
            SettingsError::Trusted(why) => {
                write!(f, "Failed to configure CA certificate(s) file/directory: {why}")
            }
            SettingsError::Protocols(why) | SettingsError::Other(why) => f.write_str(why),
            SettingsError::Ciphers(list, why) => write!(f, "Failed to configure ciphers: {list}: {why}"),
            SettingsError::Ciphersuites(list, why) => write!(f, "Failed to configure ciphersuites: {list}: {why}"),
            SettingsError::Host(name) => write!(f, "'{name}' is no host name"),
        }
    }
}

impl std::error::Error for SettingsError {}

impl SettingsError {
    /// As redis-cli says it, and why.
    pub fn for_client(&self) -> String {
        match self {
            SettingsError::Certificate(path, why) => format!("Invalid client certificate: {}: {why}", path.display()),
            SettingsError::Key(path, why) => format!("Invalid private key: {}: {why}", path.display()),
            SettingsError::Trusted(why) => format!("Invalid CA Certificate File/Directory: {why}"),
            SettingsError::Ciphers(_, why) => format!("Error while configuring ciphers: {why}"),
            SettingsError::Ciphersuites(_, why) => format!("Error while setting cypher suites: {why}"),
            SettingsError::Host(name) => format!("Failed to configure SNI: '{name}' is no host name"),
            SettingsError::Protocols(why) | SettingsError::Other(why) => why.clone(),
        }
    }
}

impl From<rustls::Error> for SettingsError {
    fn from(error: rustls::Error) -> Self {
        SettingsError::Other(error.to_string())
    }
}

impl Identity {
    fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), SettingsError> {
        let chain = files::certificates(&self.certificate)
            .map_err(|why| SettingsError::Certificate(self.certificate.clone(), why))?;
        let key = files::private_key(&self.key, self.password.as_deref())
            .map_err(|why| SettingsError::Key(self.key.clone(), why))?;
        Ok((chain, key))
    }

    /// rustls says whether the key is one it can use and whether it belongs to the certificate.
    fn unusable(&self, error: &rustls::Error) -> SettingsError {
        match error {
            rustls::Error::InvalidCertificate(_) => {
                SettingsError::Certificate(self.certificate.clone(), error.to_string())
            }
            _ => SettingsError::Key(self.key.clone(), error.to_string()),
        }
    }
}

impl Trusted {
    fn is_set(&self) -> bool {
        self.file.is_some() || self.directory.is_some()
    }

    fn load(&self) -> Result<Anchors, SettingsError> {
        let mut certificates = Vec::new();
        if let Some(file) = &self.file {
            certificates.extend(files::certificates(file).map_err(|why| at(file, &why))?);
        }
        if let Some(directory) = &self.directory {
            certificates.extend(files::certificates_in(directory).map_err(|why| at(directory, &why))?);
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if added == 0 && self.is_set() {
            return Err(SettingsError::Trusted("there is no usable certificate".to_owned()));
        }
        Ok(Anchors { roots: Arc::new(roots), certificates })
    }

    /// The authorities of the system, where OpenSSL looks for them.
    fn of_system() -> Trusted {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let first = |paths: &[&str]| paths.iter().map(PathBuf::from).find(|path| path.exists());
        Trusted { file: set("SSL_CERT_FILE").or_else(|| first(SYSTEM_FILES)), directory: set("SSL_CERT_DIR") }
    }
}

/// Where systems keep all authorities in one file.
const SYSTEM_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

fn at(path: &Path, why: &str) -> SettingsError {
    SettingsError::Trusted(format!("{}: {why}", path.display()))
}

impl Rules {
    fn parse(&self) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), SettingsError> {
        let versions = suites::versions(&self.protocols).map_err(SettingsError::Protocols)?;
        let mut cipher_suites = suites::of_tls13(&self.ciphersuites)
            .map_err(|why| SettingsError::Ciphersuites(self.ciphersuites.clone(), why))?;
        cipher_suites
            .extend(suites::of_tls12(&self.ciphers).map_err(|why| SettingsError::Ciphers(self.ciphers.clone(), why))?);
        let provider = CryptoProvider { cipher_suites, ..rustls::crypto::ring::default_provider() };
        Ok((Arc::new(provider), versions))
    }
}

impl ServerSettings {
    /// Reads all files and makes what listeners need; [`Acceptor::replace`] puts it in use.
    ///
    /// # Errors
    /// When a file cannot be used or an option not be served.
    pub fn load(&self) -> Result<Loaded, SettingsError> {
        let (provider, versions) = self.rules.parse()?;
        let (chain, key) = self.identity.load()?;
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
        let anchors = self.trusted.load()?;
        let builder = if self.client_certificates == ClientCertificates::No {
            builder.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder_with_provider(anchors.roots.clone(), provider);
            let verifier = if self.client_certificates == ClientCertificates::Optional {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            let usual = verifier.build().map_err(|error| SettingsError::Trusted(error.to_string()))?;
            builder.with_client_cert_verifier(Arc::new(ClientCheck { usual, anchors }))
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| self.identity.unusable(&error))?;
        config.ignore_client_order = self.prefers_own_order;
        config.session_storage = match self.cache {
            Some(limits) => Arc::new(cache::Sessions::new(limits)),
            None => Arc::new(NoServerSessionStorage {}),
        };
        Ok(Loaded(Arc::new(config)))
    }
}

/// Settings of a server, ready for use.
#[derive(Clone)]
pub struct Loaded(pub(crate) Arc<ServerConfig>);

/// Makes connections of listeners encrypted; its settings can be replaced while it is in use. Connections that stand keep
/// the settings that they began with.
pub struct Acceptor {
    config: RwLock<Loaded>,
}

impl Acceptor {
    /// Takes settings in use.
    pub fn new(settings: Loaded) -> Acceptor {
        Acceptor { config: RwLock::new(settings) }
    }

    /// Puts other settings in use, for connections from now on.
    pub fn replace(&self, settings: Loaded) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl ClientSettings {
    /// Takes one of the options with a value that redis-cli and redis-benchmark share, and our own `--tls-verify-host`.
    /// `false`: it is none of them.
    pub fn option(&mut self, name: &str, value: Vec<u8>) -> bool {
        let path = |value| PathBuf::from(OsString::from_vec(value));
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        match name {
            "--sni" => self.sni = Some(text(value)),
            "--cacert" => self.trusted.file = Some(path(value)),
            "--cacertdir" => self.trusted.directory = Some(path(value)),
            "--cert" => self.identity.get_or_insert_default().certificate = path(value),
            "--key" => self.identity.get_or_insert_default().key = path(value),
            "--tls-ciphers" => self.rules.ciphers = text(value),
            "--tls-ciphersuites" => self.rules.ciphersuites = text(value),
            "--tls-verify-host" => self.verify = Verify::Host(text(value)),
            _ => return false,
        }
        true
    }

    /// Reads all files and makes what connections need.
    ///
    /// # Errors
    /// When a file cannot be used or an option not be served.
    pub fn load(&self) -> Result<Connector, SettingsError> {
        let (provider, versions) = self.rules.parse()?;
        let name_of =
            |text: &str| ServerName::try_from(text.to_owned()).map_err(|_| SettingsError::Host(text.to_owned()));
        let (is_checked, host) = match &self.verify {
            Verify::Nothing => (false, None),
            Verify::Authority => (true, None),
            Verify::Host(host) => (true, Some(name_of(host)?)),
        };
        let anchors = match (is_checked, self.trusted.is_set()) {
            (false, _) => None,
            (true, true) => Some(self.trusted.load()?),
            (true, false) => Some(Trusted::of_system().load()?),
        };
        let check = ServerCheck { provider: provider.clone(), anchors, host };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(check));
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) if identity.certificate.as_os_str().is_empty() => {
                return Err(SettingsError::Certificate(PathBuf::new(), "a key needs a certificate".to_owned()));
            }
            Some(identity) if identity.key.as_os_str().is_empty() => {
                return Err(SettingsError::Key(PathBuf::new(), "a certificate needs a key".to_owned()));
            }
            Some(identity) => {
                let (chain, key) = identity.load()?;
                builder.with_client_auth_cert(chain, key).map_err(|error| identity.unusable(&error))?
            }
        };
        config.enable_sni = self.sni.is_some();
        // The name is told only if it was given; without one, any stands for the server among kept sessions.
        let name = name_of(self.sni.as_deref().unwrap_or("redis"))?;
        Ok(Connector { config: Arc::new(config), name })
    }
}

/// Makes connections to a server encrypted.
#[derive(Clone)]
pub struct Connector {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("name", &self.name).finish_non_exhaustive()
    }
}
