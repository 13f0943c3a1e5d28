//! Whom to trust.
//!
//! As redis-cli and Redis, a client checks that an authority it trusts stands behind the server's certificate, not that the
//! certificate was made for this host, unless it is asked to. A certificate that is itself among the trusted ones is good,
//! even if it is one of an authority: `openssl req -x509` makes such, and OpenSSL takes them.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

/// Trusted certificates.
#[derive(Debug)]
pub(super) struct Anchors {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl Anchors {
    /// Whether `error` is only that this very certificate, which is trusted, is one of an authority. (Its dates were
    /// looked at before that was found.)
    fn excuses(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        matches!(error, Error::InvalidCertificate(_))
            && format!("{error:?}").contains("CaUsedAsEndEntity")
            && self.certificates.iter().any(|known| known.as_ref() == certificate.as_ref())
    }
}

/// What a client checks of a server.
#[derive(Debug)]
pub(super) struct ServerCheck {
    pub(super) provider: Arc<CryptoProvider>,
    /// `None`: any certificate will do.
    pub(super) anchors: Option<Anchors>,
    /// The certificate must be made for this host.
    pub(super) host: Option<ServerName<'static>>,
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(anchors) = &self.anchors else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(&certificate, &anchors.roots, intermediates, now, algorithms) {
            Err(error) if !anchors.excuses(end_entity, &error) => return Err(error),
            _ => {}
        }
        if let Some(host) = &self.host {
            verify_server_name(&certificate, host)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a server checks of a client.
#[derive(Debug)]
pub(super) struct ClientCheck {
    pub(super) usual: Arc<dyn ClientCertVerifier>,
    pub(super) anchors: Anchors,
}

impl ClientCertVerifier for ClientCheck {
    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.usual.verify_client_cert(end_entity, intermediates, now) {
            Err(error) if self.anchors.excuses(end_entity, &error) => Ok(ClientCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
