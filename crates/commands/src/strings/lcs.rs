//! LCS: the longest common subsequence of two strings.
//!
//! The classic table: cell (i, j) holds the length for the first i and j bytes; the way back from the last cell gives
//! the matches. The table takes 4 bytes a cell and is refused beyond `proto-max-bulk-len`, as in Redis.

use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::{StrRef, ValueRef};
use resp::{Args, Reply};

/// Cells computed in the time that other commands take for one element.
const CELLS_PER_ELEMENT: usize = 16;

/// LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]
pub(super) fn lcs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let is_string = [1, 2].map(|index| matches!(ctx.db.read(args.at(index)), None | Some(ValueRef::Str(_))));
    if is_string != [true, true] {
        return Err(CmdError::new("ERR The specified keys must contain string values"));
    }
    let options = Options::read(args.slice(3))?;
    let (mut first_digits, mut second_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    let first = string_of(ctx.db.get(args.at(1))).as_bytes(&mut first_digits);
    let second = string_of(ctx.db.get(args.at(2))).as_bytes(&mut second_digits);
    let table = Table::build(first, second, ctx.settings.max_bulk)?;
    if options.index {
        write_matches(ctx.out, &table, first, second, &options);
    } else if options.len {
        ctx.out.int(i64::from(table.len()));
    } else {
        ctx.out.bulk(table.text(first, second));
    }
    Ok(())
}

/// Cells of the table.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    let len = |index| string_of(ctx.db.get(args.at(index))).len();
    len(1).saturating_mul(len(2)) / CELLS_PER_ELEMENT
}

fn string_of(value: Option<ValueRef<'_>>) -> StrRef<'_> {
    match value {
        Some(ValueRef::Str(string)) => string,
        _ => StrRef::Bytes(b""),
    }
}

struct Options {
    len: bool,
    index: bool,
    with_len: bool,
    min_len: i64,
}

impl Options {
    fn read(args: Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options { len: false, index: false, with_len: false, min_len: 0 };
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            if is_word(word, "idx") {
                options.index = true;
            } else if is_word(word, "len") {
                options.len = true;
            } else if is_word(word, "withmatchlen") {
                options.with_len = true;
            } else if is_word(word, "minmatchlen") {
                options.min_len = int(rest.next().ok_or(SYNTAX)?)?.max(0);
            } else {
                return Err(SYNTAX);
            }
        }
        if options.len && options.index {
            return Err(CmdError::new("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

/// Lengths for all pairs of prefixes, row by row.
struct Table {
    cells: Vec<u32>,
    rows: usize,
    columns: usize,
}

impl Table {
    fn build(first: &[u8], second: &[u8], max_bytes: usize) -> Result<Table, CmdError> {
        let longest = u32::MAX as usize - 1;
        if first.len() >= longest || second.len() >= longest {
            return Err(CmdError::new("ERR String too long for LCS"));
        }
        let (rows, columns) = (first.len() + 1, second.len() + 1);
        let count = rows
            .checked_mul(columns)
            .filter(|count| count.checked_mul(size_of::<u32>()).is_some_and(|bytes| bytes <= max_bytes));
        let count = count
            .ok_or(CmdError::new("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"))?;
        let mut cells = Vec::new();
        if cells.try_reserve_exact(count).is_err() {
            return Err(CmdError::new("ERR Insufficient memory, failed allocating transient memory for LCS"));
        }
        cells.resize(columns, 0);
        for (row, byte) in first.iter().enumerate() {
            let above = row * columns;
            let mut left = 0;
            cells.push(0);
            for (column, other) in second.iter().enumerate() {
                let at = above + column;
                left = if byte == other { cells[at] + 1 } else { cells[at + 1].max(left) };
                cells.push(left);
            }
        }
        Ok(Table { cells, rows, columns })
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.cells.get(row * self.columns + column).copied().unwrap_or(0)
    }

    /// Length of the whole subsequence.
    fn len(&self) -> u32 {
        self.at(self.rows - 1, self.columns - 1)
    }

    /// Walks from the end to the start; calls `visit` for each step with the position before it and whether the bytes
    /// there are equal. `visit` gives false to stop.
    fn walk(&self, first: &[u8], second: &[u8], mut visit: impl FnMut(usize, usize, bool)) {
        let (mut row, mut column) = (first.len(), second.len());
        while row > 0 && column > 0 {
            let is_match = first.get(row - 1) == second.get(column - 1);
            visit(row - 1, column - 1, is_match);
            if is_match {
                row -= 1;
                column -= 1;
            } else if self.at(row - 1, column) > self.at(row, column - 1) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
    }

    /// The subsequence itself.
    fn text(&self, first: &[u8], second: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len() as usize);
        self.walk(first, second, |row, _, is_match| {
            if is_match {
                text.extend(first.get(row));
            }
        });
        text.reverse();
        text
    }
}

/// Matching bytes in a row: from (`first`, `second`) on, `len` of them.
#[derive(Clone, Copy)]
struct Match {
    first: usize,
    second: usize,
    len: usize,
}

/// The reply of IDX: matches from the last to the first.
fn write_matches(out: &mut Reply, table: &Table, first: &[u8], second: &[u8], options: &Options) {
    out.map(2);
    out.bulk("matches");
    let matches = out.defer();
    let mut count = 0;
    let mut emit = |out: &mut Reply, found: Match| {
        if i64::try_from(found.len).is_ok_and(|len| len < options.min_len) {
            return;
        }
        out.array(if options.with_len { 3 } else { 2 });
        for start in [found.first, found.second] {
            out.array(2);
            out.count(start);
            out.count(start + found.len - 1);
        }
        if options.with_len {
            out.count(found.len);
        }
        count += 1;
    };
    let mut open: Option<Match> = None;
    table.walk(first, second, |row, column, is_match| {
        open = match (open, is_match) {
            (Some(run), true) if run.first == row + 1 && run.second == column + 1 => {
                Some(Match { first: row, second: column, len: run.len + 1 })
            }
            (run, true) => {
                if let Some(run) = run {
                    emit(out, run);
                }
                Some(Match { first: row, second: column, len: 1 })
            }
            (run, false) => {
                if let Some(run) = run {
                    emit(out, run);
                }
                None
            }
        };
    });
    if let Some(run) = open {
        emit(out, run);
    }
    out.finish_array(matches, count);
    out.bulk("len");
    out.int(i64::from(table.len()));
}
