//! ZSCAN.

use crate::collections::{ScanOptions, cursor, empty_scan, reply_scan, write_elem};
use crate::ctx::Ctx;
use crate::error::CmdResult;
use resp::Args;
use resp::num::{self, DOUBLE_TEXT_MAX};

/// ZSCAN key cursor [MATCH pattern] [COUNT count]
///
/// Scores are bulks in both protocol versions: of the small form as they are stored, of the big form with the text of
/// C's `%.17g`, as in Redis.
pub(super) fn zscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let cursor = cursor(args.at(2))?;
    let Some(zset) = ctx.db.read_zset(args.at(1))? else { return empty_scan(ctx.out) };
    let options = ScanOptions::parse(args.slice(3))?;
    reply_scan(ctx.out, |out| {
        let mut written = 0;
        if let Some(pack) = zset.as_listpack() {
            for (member, score) in pack.pairs().filter(|(member, _)| options.wants(*member)) {
                write_elem(out, member);
                write_elem(out, score);
                written += 2;
            }
            return (0, written);
        }
        let next = zset.scan(cursor, options.count, |member, score| {
            if options.wants(member) {
                write_elem(out, member);
                out.bulk(num::format_double_17g(score, &mut [0; DOUBLE_TEXT_MAX]));
                written += 2;
            }
        });
        (next, written)
    });
    Ok(())
}
