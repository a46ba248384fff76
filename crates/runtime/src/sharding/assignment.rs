//! Which member should hold which shard: rendezvous hashing with an equal load.

use std::collections::BTreeMap;

/// A part of all keys. Every key belongs to exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub(crate) u32);

impl Shard {
    /// The shard of a key, of so many shards. It is the same in every process and every version of this crate.
    pub(crate) fn of(key: &str, shards: u32) -> Self {
        let hash = stable_hash(key.as_bytes(), 0) % u64::from(shards.max(1));
        Self(u32::try_from(hash).unwrap_or_default())
    }

    /// The number of the shard, counted from zero.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The member that should hold each shard. Everybody who knows the same members computes the same.
///
/// Each pair of shard and member has a score. From the highest score down, a shard goes to a member that has not yet its
/// equal share; so a member that joins or leaves moves little more than its own share.
pub(crate) fn assign<'a>(members: &[&'a str], shards: u32) -> BTreeMap<Shard, &'a str> {
    let Some(share) = shards.checked_div(u32::try_from(members.len()).unwrap_or(u32::MAX)) else {
        return BTreeMap::new();
    };
    // The first members that want one more get it, so that shares differ by one at most.
    let mut extra = shards as usize - share as usize * members.len();
    let mut pairs = Vec::with_capacity(members.len() * shards as usize);
    for (index, member) in members.iter().enumerate() {
        pairs.extend((0..shards).map(|shard| {
            let score = stable_hash(member.as_bytes(), u64::from(shard) + 1);
            (score, shard, index)
        }));
    }
    pairs.sort_unstable_by(|a, b| b.cmp(a));
    let mut loads = vec![0_u32; members.len()];
    let mut assigned = BTreeMap::new();
    for (_, shard, index) in pairs {
        if assigned.contains_key(&Shard(shard)) || loads[index] > share {
            continue;
        }
        if loads[index] == share {
            if extra == 0 {
                continue;
            }
            extra -= 1;
        }
        loads[index] += 1;
        assigned.insert(Shard(shard), members[index]);
    }
    assigned
}

/// FNV-1a with the finalizer of SplitMix64: written down here because it must never change.
fn stable_hash(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count)
            .map(|n| format!("operator-{n}-{}", n * 7919))
            .collect()
    }

    fn assigned(names: &[String]) -> BTreeMap<Shard, &str> {
        let members: Vec<&str> = names.iter().map(String::as_str).collect();
        assign(&members, 64)
    }

    #[test]
    fn every_shard_has_a_member_and_shares_differ_by_one() {
        for count in 1..=20 {
            let names = names(count);
            let assigned = assigned(&names);
            assert_eq!(assigned.len(), 64, "{count}");
            let load = |name: &String| assigned.values().filter(|other| *other == name).count();
            let loads: Vec<usize> = names.iter().map(load).collect();
            let (least, most) = (loads.iter().min(), loads.iter().max());
            assert!(most <= least.map(|least| least + 1).as_ref(), "{loads:?}");
        }
        assert!(assign(&[], 64).is_empty());
    }

    #[test]
    fn order_of_members_does_not_matter() {
        let mut names = names(5);
        let before = assigned(&names).into_iter().map(|(s, m)| (s, m.to_owned()));
        let before: Vec<_> = before.collect();
        names.reverse();
        let after = assigned(&names).into_iter().map(|(s, m)| (s, m.to_owned()));
        assert_eq!(before, after.collect::<Vec<_>>());
    }

    #[test]
    fn member_that_joins_moves_at_most_twice_its_share() {
        for count in 1..=10 {
            let (before, after) = (names(count), names(count + 1));
            let (before, after) = (assigned(&before), assigned(&after));
            let moved = before
                .iter()
                .filter(|(shard, member)| after[shard] != **member);
            let (moved, share) = (moved.count(), 64_usize.div_ceil(count + 1));
            assert!(moved <= 2 * share, "{count}: {moved} of {share}");
        }
    }

    #[test]
    fn shards_of_keys_are_fixed_and_spread() {
        assert_eq!(Shard::of("default/web", 64), Shard::of("default/web", 64));
        let mut counts = [0; 64];
        for n in 0..6400 {
            counts[Shard::of(&format!("namespace-{}/web-{n}", n % 7), 64).0 as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (60..150).contains(count)),
            "{counts:?}"
        );
    }
}
