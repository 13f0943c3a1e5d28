//! Certificates for tests: an authority that lasts as long as the test.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

/// An authority and the files of what it has signed, in a directory that goes with it.
pub struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// Files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key, not encrypted.
    pub key: PathBuf,
}

impl Certificate {
    /// The certificate's file as text, for an argument.
    pub fn certificate(&self) -> &str {
        self.certificate.to_str().unwrap_or_default()
    }

    /// The key's file as text, for an argument.
    pub fn key(&self) -> &str {
        self.key.to_str().unwrap_or_default()
    }
}

impl Authority {
    /// A new authority with a key of its own.
    ///
    /// # Panics
    /// When its files cannot be written.
    #[track_caller]
    pub fn new(name: &str) -> Authority {
        match Authority::try_new(name) {
            Ok(authority) => authority,
            Err(error) => panic!("no authority: {error}"),
        }
    }

    fn try_new(name: &str) -> Result<Authority, Box<dyn std::error::Error>> {
        let directory = tempfile::Builder::new().prefix("oxidis-authority-").tempdir()?;
        let mut params = named(name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        fs::write(directory.path().join("ca.crt"), certificate.pem())?;
        fs::write(directory.path().join("ca.key"), key.serialize_pem())?;
        Ok(Authority { directory, issuer: Issuer::new(params, key) })
    }

    /// The file of its own certificate.
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    /// The authority's own certificate and key as a pair.
    pub fn itself(&self) -> Certificate {
        Certificate { certificate: self.certificate(), key: self.directory.path().join("ca.key") }
    }

    /// The directory of its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Signs a certificate for hosts and addresses; its files are called by `name`.
    ///
    /// # Panics
    /// When that cannot be done.
    #[track_caller]
    pub fn issue(&self, name: &str, hosts: &[&str]) -> Certificate {
        self.issue_until(name, hosts, 4000)
    }

    /// As [`Authority::issue`], for a certificate that is good from 2000 to the begin of a year.
    ///
    /// # Panics
    /// When that cannot be done.
    #[track_caller]
    pub fn issue_until(&self, name: &str, hosts: &[&str], year: i32) -> Certificate {
        match self.try_issue(name, hosts, year) {
            Ok(files) => files,
            Err(error) => panic!("no certificate: {error}"),
        }
    }

    fn try_issue(&self, name: &str, hosts: &[&str], year: i32) -> Result<Certificate, Box<dyn std::error::Error>> {
        let mut params = named(name, hosts)?;
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let signed = params.signed_by(&key, &self.issuer)?;
        let files = Certificate {
            certificate: self.directory.path().join(format!("{name}.crt")),
            key: self.directory.path().join(format!("{name}.key")),
        };
        fs::write(&files.certificate, signed.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        Ok(files)
    }
}

fn named(name: &str, hosts: &[&str]) -> Result<CertificateParams, Error> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}
