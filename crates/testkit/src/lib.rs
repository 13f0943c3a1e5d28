//! Starts servers and peers, speaks RESP, compares replies. For tests only.
