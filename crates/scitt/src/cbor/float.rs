//! Half-precision floats, and the shortest encoding of a float (RFC 8949, sections 4.2.2 and D).

/// Converts an IEEE 754 half-precision float.
pub(super) fn from_half(bits: u16) -> f64 {
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// Appends the shortest encoding that keeps the value; every NaN becomes `F97E00`.
pub(super) fn write(out: &mut Vec<u8>, value: f64) {
    let single = value as f32;
    if value.is_nan() {
        out.extend_from_slice(&[0xf9, 0x7e, 0x00]);
    } else if f64::from(single) != value {
        out.push(0xfb);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Some(half) = to_half(single) {
        out.push(0xf9);
        out.extend_from_slice(&half.to_be_bytes());
    } else {
        out.push(0xfa);
        out.extend_from_slice(&single.to_be_bytes());
    }
}

/// Returns the half-precision float with exactly this value, if there is one.
fn to_half(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let exponent = ((bits >> 23) & 0xff) as i32 - 127;
    let fraction = bits & 0x7f_ffff;
    let magnitude = match exponent {
        -127 if fraction == 0 => 0,
        128 if fraction == 0 => 0x7c00,
        -14..=15 if fraction & 0x1fff == 0 => (((exponent + 15) as u32) << 10) | (fraction >> 13),
        -24..=-15 => subnormal(fraction | 0x80_0000, (-1 - exponent) as u32)?,
        _ => return None,
    };
    Some(sign | magnitude as u16)
}

fn subnormal(significand: u32, shift: u32) -> Option<u32> {
    (significand.trailing_zeros() >= shift).then_some(significand >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_written_back_as_itself() {
        for bits in 0..=u16::MAX {
            let value = from_half(bits);
            let mut out = Vec::new();
            write(&mut out, value);
            let expected = if value.is_nan() { 0x7e00 } else { bits };
            assert_eq!(out, [&[0xf9][..], &expected.to_be_bytes()].concat(), "{value}");
        }
    }

    #[test]
    fn values_that_no_half_holds_keep_a_longer_form() {
        for (value, hex) in [
            (100_000.0, "fa47c35000"),
            (1.1, "fb3ff199999999999a"),
            (3.4028234663852886e38, "fa7f7fffff"),
            (1.0e300, "fb7e37e43c8800759c"),
            (5.960464477539063e-8, "f90001"),
            (2.9802322387695312e-8, "fa33000000"),
        ] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(data_encoding::HEXLOWER.encode(&out), hex);
        }
    }
}
