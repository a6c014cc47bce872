//! The random order of subjects. The order is generated before the measurement, and is the same for
//! every contender.

/// A small generator of pseudorandom numbers (`SplitMix64`; Steele, Lea and Flood, 2014). The same
/// seed gives the same numbers. The generator does not run during a measurement.
#[derive(Clone, Debug)]
pub struct Generator(u64);

impl Generator {
    /// Creates a generator with the seed `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number, which is at least 0 and below `bound`.
    pub const fn below(&mut self, bound: u32) -> u32 {
        (((self.number() >> 32) * bound as u64) >> 32) as u32
    }

    /// Returns the next number, which is at least 0 and below 1.
    fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the numbers from 0 to `subjects − 1` in a random order. Each number occurs once.
#[must_use]
pub fn each(subjects: u32, seed: u64) -> Vec<u32> {
    let mut generator = Generator::new(seed);
    let mut order: Vec<u32> = (0..subjects).collect();
    for last in (1..subjects).rev() {
        order.swap(last as usize, generator.below(last + 1) as usize);
    }
    order
}

/// Returns `count` subjects. All subjects have the same probability.
#[must_use]
pub fn uniform(subjects: u32, count: usize, seed: u64) -> Vec<u32> {
    let mut generator = Generator::new(seed);
    (0..count).map(|_| generator.below(subjects)).collect()
}

/// Returns `count` subjects. The probability of the subject with rank r is about proportional to
/// 1/r (Zipf's law with exponent 1; a rank is computed as `subjects^u` from a uniform number u).
/// The ranks are assigned to the subjects in a random order.
#[must_use]
pub fn skewed(subjects: u32, count: usize, seed: u64) -> Vec<u32> {
    let mut generator = Generator::new(seed);
    let scattered = each(subjects, generator.number());
    let draw = |_| {
        let rank = f64::from(subjects).powf(generator.unit()) as u32;
        scattered[rank.min(subjects - 1) as usize]
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_once() {
        let mut order = each(1_000, 1);
        assert_ne!(order, (0..1_000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn uniform_draws_reach_everyone_and_nobody_else() {
        let mut seen = [0_u32; 16];
        for index in uniform(16, 16_000, 1) {
            seen[index as usize] += 1;
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
    }

    #[test]
    fn skewed_draws_favour_few() {
        let mut seen = vec![0_u32; 10_000];
        for index in skewed(10_000, 100_000, 1) {
            seen[index as usize] += 1;
        }
        seen.sort_unstable_by(|a, b| b.cmp(a));
        let hundred: u32 = seen[..100].iter().sum();
        assert!((40_000..60_000).contains(&hundred), "a hundredth of the subjects has {hundred}");
    }
}
