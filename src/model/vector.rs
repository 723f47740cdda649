//! An embedding, one byte per number.

use super::{Limit, Texts};

/// Maximum dimension.
pub const LENGTH_MAX: usize = 4096;
/// Maximum bytes of a text to embed: the smallest limit among models.
const TEXT: Limit = Limit(2000);

/// A unit vector: `numbers[i] * scale` is its i-th number.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub scale: f32,
    pub numbers: Vec<i8>,
}

impl Vector {
    /// Packs a model's vector; `None` if it has no direction: empty, zero or not finite.
    pub fn of(numbers: &[f32]) -> Option<Vector> {
        let length = numbers.iter().map(|n| f64::from(*n) * f64::from(*n)).sum::<f64>().sqrt() as f32;
        let most = numbers.iter().fold(0.0_f32, |most, n| most.max(n.abs()));
        let sound = length.is_finite() && length > 0.0 && (1..=LENGTH_MAX).contains(&numbers.len());
        sound.then(|| {
            let packed = numbers.iter().map(|n| (n / most * 127.0).round() as i8).collect();
            Vector { scale: most / 127.0 / length, numbers: packed }
        })
    }

    /// Returns the cosine with another vector of the same dimension, given as bytes.
    pub fn cosine(&self, scale: f32, numbers: &[u8]) -> f32 {
        let sum: i32 = self.numbers.iter().zip(numbers).map(|(a, b)| i32::from(*a) * i32::from(*b as i8)).sum();
        sum as f32 * self.scale * scale
    }
}

/// Texts to embed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passages(pub Vec<String>);

impl Texts for Passages {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.0.iter_mut().for_each(|text| visit(text, TEXT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_direction_is_no_vector() {
        for numbers in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
            assert_eq!(Vector::of(numbers), None, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_keep_the_angle(a in prop::collection::vec(-1.0_f32..1.0, 64), b in prop::collection::vec(-1.0_f32..1.0, 64)) {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
            let (a, b) = (Vector::of(&a).unwrap(), Vector::of(&b).unwrap());
            let bytes: Vec<u8> = b.numbers.iter().map(|n| *n as u8).collect();
            prop_assert!((a.cosine(b.scale, &bytes) - cosine).abs() < 0.02);
        }
    }
}
