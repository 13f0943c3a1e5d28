//! Frames between agents and their coordinator, and histograms in them (HdrHistogram's V2 encoding, deflated, in base64).

use std::io::{self, Read, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize, de::DeserializeOwned, de::Error as _, ser::Error as _};

use crate::latency::Latency;

/// Writes one message.
pub(crate) fn send<M: Serialize>(stream: &mut impl Write, message: &M) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&body);
    stream.write_all(&frame)
}

/// Reads one message of at most `bytes_max` bytes. The buffer grows with what arrives, not with what is announced.
pub(crate) fn receive<M: DeserializeOwned>(stream: &mut impl Read, bytes_max: u32) -> io::Result<M> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes is too long")));
    }
    let mut body = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A histogram as base64 text.
pub(crate) fn to_text(latency: &Latency) -> io::Result<String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(latency, &mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}

/// The histogram of a text; the error says what is wrong.
pub(crate) fn from_text(text: &str) -> Result<Latency, String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| format!("{error:?}"))
}

/// For serde: a histogram.
pub(crate) fn serialize<S: serde::Serializer>(latency: &Latency, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(latency).map_err(S::Error::custom)?)
}

/// For serde: a histogram.
pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Latency, D::Error> {
    from_text(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// For serde: a histogram that may be missing.
pub(crate) mod optional {
    use serde::Deserialize;

    use super::{Latency, from_text, to_text};
    use serde::{de::Error as _, ser::Error as _};

    /// Writes it.
    pub(crate) fn serialize<S: serde::Serializer>(latency: &Option<Latency>, serializer: S) -> Result<S::Ok, S::Error> {
        match latency {
            None => serializer.serialize_none(),
            Some(latency) => serializer.serialize_some(&to_text(latency).map_err(S::Error::custom)?),
        }
    }

    /// Reads it.
    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Latency>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| from_text(&text).map_err(D::Error::custom)).transpose()
    }
}

/// Longest message: an outcome with a long timeline.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 256 << 20;

/// Longest message of somebody who has not shown a token yet.
pub(crate) const STRANGER_BYTES_MAX: u32 = 4 << 10;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{latency, results::Outcome};

    #[test]
    fn outcomes_arrive_as_they_were() {
        let mut outcome = Outcome::empty("SET", 3, 3);
        for value in [1, 50, 51, 1_000, 3_000_000, 600_000_000] {
            outcome.service.saturating_record_n(value, 7);
        }
        outcome.response = Some(outcome.service.clone());
        outcome.errors.add_reply("ERR x");
        outcome.fairness.add_many(5, 9);
        outcome.finished = 42;
        let mut bytes = Vec::new();
        send(&mut bytes, &outcome).unwrap();
        let back: Outcome = receive(&mut bytes.as_slice(), MESSAGE_BYTES_MAX).unwrap();
        assert_eq!((&back.service, &back.response), (&outcome.service, &outcome.response));
        assert_eq!((&back.errors, &back.fairness, back.finished), (&outcome.errors, &outcome.fairness, 42));
        let mut sum = latency::recorder(3);
        latency::add(&mut sum, &back.service);
        assert_eq!(sum.len(), 42);
    }

    #[test]
    fn bad_frames_are_refused() {
        assert!(receive::<String>(&mut &[0, 0, 0, 9, b'"'][..], 100).is_err());
        assert!(
            receive::<String>(&mut &[0xff, 0xff, 0xff, 0xff][..], 100).unwrap_err().to_string().contains("too long")
        );
        assert!(receive::<String>(&mut &[0, 0, 0, 1, b'x'][..], 100).is_err());
        assert!(from_text("????").is_err() && from_text("AAAA").is_err());
    }
}
