//! A table whose rows fill the places `__field:NAME__` of a command (`--dataset`, as in Valkey).
//!
//! Comma- or tab-separated, by what the heading has; fields may be quoted as RFC 4180 says. The first line names the
//! fields.

use std::{fs, path::Path};

/// Rows with named fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dataset {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Dataset {
    /// Reads a file, at most `rows_max` rows of it. The error is a sentence for stderr.
    pub(crate) fn read(path: &Path, rows_max: usize) -> Result<Dataset, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("Error: cannot read {}: {error}", path.display()))?;
        Dataset::parse(&text, rows_max).map_err(|error| format!("Error: {}: {error}", path.display()))
    }

    /// Takes the rows out of a text.
    pub(crate) fn parse(text: &str, rows_max: usize) -> Result<Dataset, String> {
        let heading = text.lines().next().unwrap_or_default();
        let separator = if heading.contains('\t') { '\t' } else { ',' };
        let mut records = Records { rest: text.trim_start_matches('\u{feff}'), separator, line: 1 };
        let names = records.next().transpose()?.unwrap_or_default();
        if names.iter().all(|name| name.trim().is_empty()) {
            return Err("the first line must name the fields".to_owned());
        }
        let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
        let mut rows = Vec::new();
        while rows.len() < rows_max {
            let line = records.line;
            let Some(row) = records.next().transpose()? else { break };
            if row.len() == 1 && row[0].is_empty() {
                continue;
            }
            if row.len() != names.len() {
                return Err(format!("line {line} has {} fields, the heading {}", row.len(), names.len()));
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Err("no row behind the heading".to_owned());
        }
        Ok(Dataset { names, rows })
    }

    /// Number of rows, at least one.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Puts the fields of a row into the places of a word. The error is a sentence for stderr.
    pub(crate) fn fill(&self, word: &[u8], row: usize) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(word.len());
        let mut rest = word;
        while let Some(at) = rest.windows(PLACE.len()).position(|window| window == PLACE) {
            let behind = rest.get(at + PLACE.len()..).unwrap_or_default();
            let Some(end) = behind.windows(2).position(|window| window == b"__") else { break };
            let name = String::from_utf8_lossy(&behind[..end]).into_owned();
            let Some(column) = self.names.iter().position(|known| *known == name) else {
                return Err(format!("the dataset has no field '{name}'; it has {}", self.names.join(", ")));
            };
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(self.rows[row][column].as_bytes());
            rest = &behind[end + 2..];
        }
        out.extend_from_slice(rest);
        Ok(out)
    }
}

/// Walks the records of a text; a quoted field may go over several lines.
struct Records<'a> {
    rest: &'a str,
    separator: char,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<Vec<String>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (mut fields, mut field, mut in_quotes) = (Vec::new(), String::new(), false);
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if in_quotes && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                    chars.next();
                    field.push('"');
                }
                '"' if in_quotes => in_quotes = false,
                '"' if field.is_empty() => in_quotes = true,
                '\r' if !in_quotes && chars.peek().is_some_and(|(_, next)| *next == '\n') => {}
                '\n' if !in_quotes => {
                    self.rest = &self.rest[at + 1..];
                    self.line += 1;
                    fields.push(field);
                    return Some(Ok(fields));
                }
                c if c == self.separator && !in_quotes => fields.push(std::mem::take(&mut field)),
                c => field.push(c),
            }
        }
        self.rest = "";
        if in_quotes {
            return Some(Err(format!("line {}: a quote is not closed", self.line)));
        }
        fields.push(field);
        Some(Ok(fields))
    }
}

const PLACE: &[u8] = b"__field:";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_fill_places() {
        let rows = Dataset::parse("id,text\n1,\"a, \"\"b\"\"\nc\"\r\n2,plain\n\n", usize::MAX).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.fill(b"doc:__field:id__:__field:text__!", 0).unwrap(), b"doc:1:a, \"b\"\nc!");
        assert_eq!(rows.fill(b"__field:text__", 1).unwrap(), b"plain");
        assert_eq!(rows.fill(b"no __field: place", 1).unwrap(), b"no __field: place");
        assert!(rows.fill(b"__field:other__", 0).unwrap_err().contains("it has id, text"));
        let tabs = Dataset::parse("a\tb\n1,5\t2\n3\t4\n", 1).unwrap();
        assert_eq!((tabs.len(), tabs.fill(b"__field:a__", 0).unwrap()), (1, b"1,5".to_vec()));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, hint) in
            [("", "first line"), ("a,b\n", "no row"), ("a,b\n1\n", "line 2 has 1 fields"), ("a\n\"x\n", "not closed")]
        {
            assert!(Dataset::parse(text, 9).unwrap_err().contains(hint), "{text:?}");
        }
    }
}
