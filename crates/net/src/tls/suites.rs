//! Versions and ciphers, by the names that OpenSSL gives them.

use rustls::crypto::ring::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256,
    TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

type Named = (&'static str, SupportedCipherSuite);

/// TLS 1.3, in order of preference.
fn suites() -> [Named; 3] {
    [
        ("TLS_AES_256_GCM_SHA384", TLS13_AES_256_GCM_SHA384),
        ("TLS_CHACHA20_POLY1305_SHA256", TLS13_CHACHA20_POLY1305_SHA256),
        ("TLS_AES_128_GCM_SHA256", TLS13_AES_128_GCM_SHA256),
    ]
}

/// TLS 1.2, in order of preference.
fn ciphers() -> [Named; 6] {
    [
        ("ECDHE-ECDSA-AES256-GCM-SHA384", TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        ("ECDHE-RSA-AES256-GCM-SHA384", TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
        ("ECDHE-RSA-CHACHA20-POLY1305", TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
        ("ECDHE-ECDSA-AES128-GCM-SHA256", TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        ("ECDHE-RSA-AES128-GCM-SHA256", TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ]
}

/// Words of OpenSSL's cipher lists that name what is never offered here: to leave it out is to do nothing.
const NEVER_OFFERED: &[&str] = &[
    "aNULL", "eNULL", "NULL", "MEDIUM", "LOW", "EXP", "EXPORT", "MD5", "SHA1", "SHA", "RC4", "RC2", "DES", "3DES",
    "IDEA", "SEED", "CAMELLIA", "ARIA", "PSK", "SRP", "DSS", "aDSS", "ADH", "AECDH", "DH", "kDH", "DHE", "EDH", "kRSA",
    "CBC", "SSLv2", "SSLv3",
];

/// The versions of `tls-protocols`; an empty text means all.
pub(super) fn versions(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut found = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let version = match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => &TLS13,
            "tlsv1.2" => &TLS12,
            "tlsv1" | "tlsv1.1" => {
                return Err(format!(
                    "{word} is specified in tls-protocols but not supported: TLSv1.2 and TLSv1.3 are."
                ));
            }
            _ => {
                return Err("Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and \
                            'TLSv1.3'."
                    .to_owned());
            }
        };
        if !found.contains(&version) {
            found.push(version);
        }
    }
    Ok(if found.is_empty() { vec![&TLS13, &TLS12] } else { found })
}

/// The suites of `tls-ciphersuites`: names with colons between them; an empty text means all.
pub(super) fn of_tls13(text: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    if text.is_empty() {
        return Ok(suites().into_iter().map(|(_, suite)| suite).collect());
    }
    let mut found = Vec::new();
    for word in text.split(':').filter(|word| !word.is_empty()) {
        let Some((_, suite)) = suites().into_iter().find(|(name, _)| *name == word) else {
            let names = suites().map(|(name, _)| name).join(", ");
            return Err(format!("'{word}' is not supported; there are {names}"));
        };
        add(&mut found, suite);
    }
    if found.is_empty() { Err("no suite is named".to_owned()) } else { Ok(found) }
}

/// The ciphers of `tls-ciphers`, a cipher list of OpenSSL: names, the words that mean all, and what is left out.
pub(super) fn of_tls12(text: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let all = || ciphers().into_iter().map(|(_, suite)| suite);
    if text.is_empty() {
        return Ok(all().collect());
    }
    let mut found = Vec::new();
    for word in text.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        let (is_left_out, name) = match word.strip_prefix(['!', '-']) {
            Some(name) => (true, name),
            None => (false, word),
        };
        if matches!(name, "DEFAULT" | "ALL" | "HIGH" | "ECDHE" | "EECDH" | "kECDHE" | "kEECDH" | "AEAD" | "TLSv1.2") {
            if is_left_out {
                found.clear();
            } else {
                all().for_each(|suite| add(&mut found, suite));
            }
        } else if let Some((_, suite)) = ciphers().into_iter().find(|(known, _)| *known == name) {
            if is_left_out {
                found.retain(|other| *other != suite);
            } else {
                add(&mut found, suite);
            }
        } else if !is_left_out || !NEVER_OFFERED.contains(&name) {
            let names = ciphers().map(|(name, _)| name).join(", ");
            return Err(format!("'{word}' is not supported; there are {names}"));
        }
    }
    if found.is_empty() { Err("no cipher is left".to_owned()) } else { Ok(found) }
}

fn add(found: &mut Vec<SupportedCipherSuite>, suite: SupportedCipherSuite) {
    if !found.contains(&suite) {
        found.push(suite);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn versions_by_name() {
        assert_eq!(versions("").unwrap().len(), 2);
        assert_eq!(versions("TLSv1.3 tlsv1.3").unwrap(), [&TLS13]);
        assert!(versions("TLSv1.1 TLSv1.2").unwrap_err().starts_with("TLSv1.1 is specified"));
        assert!(versions("SSLv3").unwrap_err().starts_with("Invalid tls-protocols specified."));
    }

    #[test]
    fn lists_of_ciphers() {
        assert_eq!(of_tls12("DEFAULT:!MEDIUM").unwrap().len(), 6);
        let one = of_tls12("ECDHE-RSA-AES128-GCM-SHA256").unwrap();
        assert_eq!(one, [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]);
        assert_eq!(of_tls12("HIGH:!aNULL:!ECDHE-RSA-AES256-GCM-SHA384").unwrap().len(), 5);
        assert!(of_tls12("AES256-SHA").unwrap_err().contains("not supported"));
        assert!(of_tls12("RC4").is_err());
        assert!(of_tls12("!ALL").is_err());
        assert_eq!(of_tls13("TLS_AES_128_GCM_SHA256").unwrap(), [TLS13_AES_128_GCM_SHA256]);
        assert!(of_tls13("TLS_AES_128_CCM_SHA256").is_err());
    }
}
