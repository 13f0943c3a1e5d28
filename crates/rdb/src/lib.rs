//! Listpack, intset and older packed encodings, LZF, CRC64, RDB and DUMP bytes. No I/O.
