//! PFSELFTEST: whether registers keep what they are given, sparse and dense ones agree, and counts are near the truth.

use super::estimate;
use super::sketch::{self, Encoding, REGISTERS, Sketch};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult};
use resp::Args;

const REGISTER_CYCLES: usize = 1000;
const ELEMENTS: u64 = 10_000_000;

/// PFSELFTEST
pub(super) fn pfselftest(ctx: &mut Ctx<'_>, _: Args<'_>) -> CmdResult {
    let mut rng = fastrand::Rng::new();
    check_registers(&mut rng, REGISTER_CYCLES)?;
    check_counts(&mut rng, ELEMENTS, ctx.settings.hll_sparse_max_bytes)?;
    ctx.out.ok();
    Ok(())
}

fn failed(what: &str) -> CmdError {
    CmdError::text(format!("ERR TESTFAILED {what}"))
}

/// Random values in all registers, then all of them read.
pub(super) fn check_registers(rng: &mut fastrand::Rng, cycles: usize) -> CmdResult {
    let mut bytes = sketch::empty();
    let corrupt = |_| failed("the empty one is corrupt");
    let mut sketch = Sketch::of(&mut bytes).ok_or(failed("the empty one is none"))?;
    sketch.make_dense().map_err(corrupt)?;
    let mut expected = vec![0_u8; REGISTERS];
    for _ in 0..cycles {
        for (index, value) in expected.iter_mut().enumerate() {
            *value = rng.u8(..64);
            sketch.dense().set(index, *value);
        }
        let registers = sketch.registers().map_err(corrupt)?;
        for (index, (found, expected)) in registers.iter().zip(&expected).enumerate() {
            if found != expected {
                return Err(failed(&format!("Register {index} should be {expected} but is {found}")));
            }
        }
    }
    Ok(())
}

/// Different elements, as many as given, into a dense one and one that starts sparse.
pub(super) fn check_counts(rng: &mut fastrand::Rng, elements: u64, sparse_max: usize) -> CmdResult {
    let corrupt = |_| failed("a valid one is corrupt");
    let (mut dense, mut grown) = (sketch::empty(), sketch::empty());
    let mut dense = Sketch::of(&mut dense).ok_or(failed("the empty one is none"))?;
    let mut grown = Sketch::of(&mut grown).ok_or(failed("the empty one is none"))?;
    dense.make_dense().map_err(corrupt)?;
    #[allow(clippy::cast_precision_loss)]
    let standard_error = 1.04 / (REGISTERS as f64).sqrt();
    let seed = rng.u64(..);
    let mut checkpoint = 1;
    for number in 1..=elements {
        let element = (number ^ seed).to_le_bytes();
        dense.add(&element, sparse_max).map_err(corrupt)?;
        grown.add(&element, sparse_max).map_err(corrupt)?;
        if number != checkpoint {
            continue;
        }
        if number < sparse_max as u64 / 2 && grown.encoding() != Encoding::Sparse {
            return Err(failed("sparse encoding not used"));
        }
        let count = estimate::count(&dense.histogram().map_err(corrupt)?);
        if count != estimate::count(&grown.histogram().map_err(corrupt)?) {
            return Err(failed("dense/sparse disagree"));
        }
        let error = count.unsigned_abs().abs_diff(number);
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
        let allowed = if number == 10 { 1 } else { (standard_error * 6.0 * number as f64).ceil() as u64 };
        if error > allowed {
            return Err(failed(&format!("Too big error. card:{number} abserr:{error}")));
        }
        checkpoint *= 10;
    }
    Ok(())
}
