//! Certificates and keys, from the files that OpenSSL reads.

use std::fs;
use std::path::Path;

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| error.to_string())
}

/// All certificates of a PEM file; none is an error.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(certificates) if certificates.is_empty() => Err("there is no certificate in it".to_owned()),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(error.to_string()),
    }
}

/// All certificates of the files of a directory; what is no certificate is passed over, as OpenSSL looks only at what it
/// is led to.
pub(super) fn certificates_in(directory: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_file() {
            found.extend(certificates(&path).unwrap_or_default());
        }
    }
    Ok(found)
}

/// The first private key of a PEM file, opened with the password if it is encrypted.
pub(super) fn private_key(path: &Path, password: Option<&[u8]>) -> Result<PrivateKeyDer<'static>, String> {
    let text = read(path)?;
    if let Some(section) = encrypted_section(&text) {
        let Some(password) = password else {
            return Err("the key is encrypted and there is no password for it".to_owned());
        };
        return decrypted(section, password);
    }
    if contains(&text, b"Proc-Type: 4,ENCRYPTED") {
        return Err("the key is encrypted in OpenSSL's old form, which is not supported: convert it with \
                    'openssl pkcs8 -topk8'"
            .to_owned());
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| error.to_string())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn encrypted_section(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let start = text.find(ENCRYPTED_BEGIN)?;
    let rest = text.get(start..)?;
    let end = rest.find(ENCRYPTED_END)?;
    rest.get(..end + ENCRYPTED_END.len())
}

fn decrypted(section: &str, password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let (_, document) = SecretDocument::from_pem(section).map_err(|error| error.to_string())?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|error| error.to_string())?;
    let key = encrypted.decrypt(password).map_err(|_| "the password does not open the key".to_owned())?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec())))
}
