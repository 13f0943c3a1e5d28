//! RESP2 and RESP3 bytes to requests and replies and back; Redis number texts.

pub mod num;
