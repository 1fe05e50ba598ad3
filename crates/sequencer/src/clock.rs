//! Wall clock time for the sequencer, and the checks of whether it can be trusted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Halt;
use crate::limits::{CLOCK_REFERENCE, CLOCK_TOLERANCE};

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time since 1970 by the wall clock.
    pub wall: Duration,
    /// Time since any fixed moment, by a clock that is never set and that runs while the machine sleeps.
    pub steady: Duration,
}

/// Source of time.
pub trait Clock: Send + Sync + 'static {
    /// Reads both clocks.
    fn now(&self) -> Now;
}

/// [`Clock`] of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { wall, steady: steady() }
    }
}

#[cfg(target_os = "linux")]
fn steady() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    // `Boottime` also runs while a laptop sleeps, so that waking up does not look like a step of the wall clock.
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(not(target_os = "linux"))]
fn steady() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Comparison of this host's wall clock with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockOpinion {
    /// Name of the other clock.
    pub by: String,
    /// Seconds by which this host's clock is ahead of the other; negative if behind.
    pub ahead: i64,
}

impl ClockOpinion {
    /// Compares with a clock that was read at an unknown moment between two readings of this host's: the time of
    /// the round trip, by the steady clock, does not count as a difference.
    pub fn between(by: impl Into<String>, theirs: Duration, asked: Now, answered: Now) -> Self {
        let took = answered.steady.saturating_sub(asked.steady);
        let ours = theirs.clamp(answered.wall.saturating_sub(took), answered.wall);
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Self { by: by.into(), ahead: seconds(ours) - seconds(theirs) }
    }

    fn agrees(&self) -> bool {
        self.ahead.unsigned_abs() <= CLOCK_TOLERANCE
    }
}

/// Refuses the clock if a majority of the opinions disagree with it ([`Halt::ClockDiffers`]). One of two does not
/// suffice, as that one may be wrong itself.
pub(crate) fn compare(opinions: &[ClockOpinion]) -> Result<(), Halt> {
    let against: Vec<&ClockOpinion> = opinions.iter().filter(|opinion| !opinion.agrees()).collect();
    let Some(worst) = against.iter().map(|opinion| opinion.ahead).max_by_key(|ahead| ahead.unsigned_abs())
    else {
        return Ok(());
    };
    if against.len() * 2 <= opinions.len() {
        return Ok(());
    }
    let by = against.iter().map(|opinion| opinion.by.as_str()).collect::<Vec<_>>().join(", ");
    Err(Halt::ClockDiffers { ahead: worst, by })
}

/// Last reading of both clocks that was found right, for the life of a process. By [`Now::steady`] it shows
/// whether the wall clock was set since.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockReference(Arc<Mutex<Option<Now>>>);

impl ClockReference {
    /// Checks the clock before this process leads, against the other clocks and the last committed time. Without
    /// other clocks and without `stated`, a clock that was set since the last reference is refused as well.
    /// `stated`: the true time according to an operator, with which the clock must agree.
    pub(crate) fn check(
        &self,
        now: Now,
        last: u64,
        opinions: &[ClockOpinion],
        stated: Option<u64>,
    ) -> Result<ClockCheck, Halt> {
        compare(opinions)?;
        let check = ClockCheck { reference: self.clone() };
        if let Some(stated) = stated {
            compare(&[ClockOpinion::between("the operator's time", Duration::from_secs(stated), now, now)])?;
        } else if opinions.is_empty() {
            check.must_not_have_stepped(now)?;
        }
        let wall = now.wall.as_secs();
        if wall.saturating_add(CLOCK_TOLERANCE) < last {
            return Err(Halt::ClockBehind { now: wall, last });
        }
        self.set(now);
        Ok(check)
    }

    fn get(&self) -> Option<Now> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, now: Now) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

/// Checks [`Now::wall`] against [`Now::steady`] while a process leads.
#[derive(Clone, Debug)]
pub(crate) struct ClockCheck {
    reference: ClockReference,
}

impl ClockCheck {
    /// Returns the wall clock's whole seconds, or [`Halt::ClockStepped`] if it was set.
    pub(crate) fn seconds(&mut self, now: Now) -> Result<u64, Halt> {
        if self.must_not_have_stepped(now)? >= CLOCK_REFERENCE {
            self.reference.set(now);
        }
        Ok(now.wall.as_secs())
    }

    /// Returns the age of the reference.
    fn must_not_have_stepped(&self, now: Now) -> Result<Duration, Halt> {
        let Some(reference) = self.reference.get() else { return Ok(Duration::ZERO) };
        let elapsed = now.steady.saturating_sub(reference.steady);
        let expected = reference.wall + elapsed;
        match now.wall.abs_diff(expected) > Duration::from_secs(CLOCK_TOLERANCE) {
            true => Err(Halt::ClockStepped { expected: expected.as_secs(), found: now.wall.as_secs() }),
            false => Ok(elapsed),
        }
    }
}

/// Clock by which submissions are checked before they are sequenced, in any role.
pub(crate) struct SubmissionClock {
    clock: Arc<dyn Clock>,
    check: Mutex<ClockCheck>,
}

impl SubmissionClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let reference = ClockReference::default();
        reference.set(clock.now());
        let check = Mutex::new(ClockCheck { reference });
        Self { clock, check }
    }

    /// Unix seconds; `None` while the wall clock cannot be trusted: after it was set, until other clocks
    /// [agree](Self::trust_again) with it, or this process [leads](Self::trust_as) by it. Until then no statement is
    /// refused for its time here: the leader decides by its own clock.
    pub(crate) fn seconds(&self) -> Option<u64> {
        let mut check = self.check.lock().unwrap_or_else(PoisonError::into_inner);
        check.seconds(self.clock.now()).ok()
    }

    /// Trusts the wall clock again after it was set, if other clocks are known and no majority of them disagrees with this
    /// reading.
    pub(crate) fn trust_again(&self, now: Now, opinions: &[ClockOpinion]) {
        if !opinions.is_empty() && compare(opinions).is_ok() {
            self.check.lock().unwrap_or_else(PoisonError::into_inner).reference.set(now);
        }
    }

    /// Trusts the reading that the checks before leading accepted. A log on SQLite without witnesses knows no other clock:
    /// there the time that an operator stated makes the checks accept a clock that was set.
    pub(crate) fn trust_as(&self, leading: &ClockCheck) {
        if let Some(now) = leading.reference.get() {
            self.check.lock().unwrap_or_else(PoisonError::into_inner).reference.set(now);
        }
    }

    /// Unix seconds by the wall clock, unchecked.
    pub(crate) fn wall_seconds(&self) -> u64 {
        self.clock.now().wall.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(ahead: &[i64]) -> Vec<ClockOpinion> {
        ahead.iter().map(|ahead| ClockOpinion { by: "somebody".into(), ahead: *ahead }).collect()
    }

    fn at(seconds: u64) -> Now {
        Now { wall: Duration::from_secs(seconds), steady: Duration::from_secs(7) }
    }

    #[test]
    fn r36_a_clock_is_refused_that_most_others_say_is_off_in_either_direction() {
        let off = CLOCK_TOLERANCE as i64 + 1;
        for right in [vec![], vec![0], vec![off - 1], vec![off, 0], vec![off, 0, -5], vec![off, -off, 0, 1]] {
            assert!(compare(&says(&right)).is_ok(), "{right:?}");
        }
        for wrong in [vec![off], vec![-off], vec![off, off, 0]] {
            assert!(matches!(compare(&says(&wrong)), Err(Halt::ClockDiffers { .. })), "{wrong:?}");
        }
        let halt = compare(&says(&[-off])).unwrap_err();
        assert_eq!(halt.to_string(), "the clock is 61 s behind somebody: set it right");
    }

    #[test]
    fn the_time_that_an_answer_took_is_no_difference() {
        let now = |wall, steady| Now { wall: Duration::from_secs(wall), steady: Duration::from_secs(steady) };
        let opinion = |theirs| {
            ClockOpinion::between("it", Duration::from_secs(theirs), now(1000, 0), now(1200, 200)).ahead
        };
        assert_eq!([opinion(1000), opinion(1100), opinion(1200)], [0, 0, 0]);
        assert_eq!([opinion(900), opinion(1300)], [100, -100]);
        let set_meanwhile =
            ClockOpinion::between("it", Duration::from_secs(1100), now(1000, 0), now(9000, 200));
        assert_eq!(set_meanwhile.ahead, 7700);
    }

    #[test]
    fn r36_a_clock_that_was_set_since_is_refused_until_it_is_set_back_or_another_clock_agrees() {
        let reference = ClockReference::default();
        reference.check(at(1000), 0, &[], None).unwrap();
        assert!(matches!(reference.check(at(5000), 0, &[], None), Err(Halt::ClockStepped { .. })));
        assert!(matches!(reference.check(at(5000), 0, &says(&[4000]), None), Err(Halt::ClockDiffers { .. })));
        reference.check(at(1001), 0, &[], None).unwrap();
        reference.check(at(5000), 0, &says(&[0]), None).unwrap();
        reference.check(at(5000), 0, &[], None).unwrap();
    }

    /// Shows the same reading until another one is put in.
    struct SetClock(Mutex<Now>);

    impl Clock for SetClock {
        fn now(&self) -> Now {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn r36_submissions_are_not_checked_by_a_clock_that_was_set_until_others_agree_with_it() {
        let clock = Arc::new(SetClock(Mutex::new(at(1000))));
        let submissions = SubmissionClock::new(clock.clone());
        assert_eq!(submissions.seconds(), Some(1000));
        *clock.0.lock().unwrap() = at(5000);
        for others in [says(&[]), says(&[4000])] {
            submissions.trust_again(at(5000), &others);
            assert_eq!(submissions.seconds(), None, "{others:?}");
        }
        submissions.trust_again(at(5000), &says(&[0]));
        assert_eq!(submissions.seconds(), Some(5000));
        *clock.0.lock().unwrap() = at(9000);
        submissions.trust_again(at(9000), &says(&[0, 4000]));
        assert_eq!(submissions.seconds(), Some(9000), "one of two is no majority");
    }

    #[test]
    fn r36_submissions_are_checked_again_by_a_clock_that_was_set_once_this_process_leads_by_it() {
        let clock = Arc::new(SetClock(Mutex::new(at(1000))));
        let submissions = SubmissionClock::new(clock.clone());
        *clock.0.lock().unwrap() = at(5000);
        assert_eq!(submissions.seconds(), None);
        let leading = ClockReference::default().check(at(5000), 0, &[], Some(5000)).unwrap();
        submissions.trust_as(&leading);
        assert_eq!(submissions.seconds(), Some(5000));
    }

    #[test]
    fn r36_a_clock_behind_the_newest_entry_is_refused() {
        let reference = ClockReference::default();
        let halt = reference.check(at(1000), 1061, &[], None).unwrap_err();
        assert_eq!(halt, Halt::ClockBehind { now: 1000, last: 1061 });
        reference.check(at(1001), 1061, &[], None).unwrap();
    }

    #[test]
    fn r36_the_time_that_an_operator_states_counts_as_one_more_clock_that_must_agree() {
        let reference = ClockReference::default();
        reference.check(at(9000), 0, &[], None).unwrap();
        let refused = |opinions: &[i64], stated| {
            matches!(
                reference.check(at(1000), 0, &says(opinions), Some(stated)),
                Err(Halt::ClockDiffers { .. })
            )
        };
        assert!(refused(&[], 1061) && refused(&[], 939), "the operator says otherwise");
        assert!(refused(&[61], 1000), "the database says otherwise");
        reference.check(at(1000), 0, &[], Some(1060)).unwrap();
    }
}
