//! Time as the sequencer needs it: what the wall says, and whether to believe it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Halt;
use crate::limits::{CLOCK_REFERENCE, CLOCK_TOLERANCE};

/// One look at both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time since 1970 by the wall clock.
    pub wall: Duration,
    /// Time since any fixed moment, by a clock that is never set and runs while the machine sleeps.
    pub steady: Duration,
}

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Reads both clocks.
    fn now(&self) -> Now;
}

/// The clocks of this machine.
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
    // Boot time runs while a laptop sleeps: waking up is not a step of the wall clock.
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

/// Judges the wall clock by the steady one.
#[derive(Clone, Debug)]
pub(crate) struct ClockJudge {
    reference: Now,
}

impl ClockJudge {
    /// Starts from a reading that is not far behind the last committed time.
    pub(crate) fn start(now: Now, last: u64) -> Result<Self, Halt> {
        match now.wall.as_secs() {
            wall if wall.saturating_add(CLOCK_TOLERANCE) < last => Err(Halt::ClockBehind { now: wall, last }),
            _ => Ok(Self { reference: now }),
        }
    }

    /// Starts from what the wall clock should say now, in whole seconds.
    pub(crate) fn expecting(wall: u64, now: Now) -> Self {
        Self { reference: Now { wall: Duration::from_secs(wall), ..now } }
    }

    /// The wall clock's whole seconds, if they are where they should be.
    pub(crate) fn seconds(&mut self, now: Now) -> Result<u64, Halt> {
        let elapsed = now.steady.saturating_sub(self.reference.steady);
        let expected = self.reference.wall + elapsed;
        if now.wall.abs_diff(expected) > Duration::from_secs(CLOCK_TOLERANCE) {
            return Err(Halt::ClockStepped { expected: expected.as_secs(), found: now.wall.as_secs() });
        }
        if elapsed >= CLOCK_REFERENCE {
            self.reference = now;
        }
        Ok(now.wall.as_secs())
    }
}

/// The time at which submissions are judged before they are sequenced, by whichever process takes them.
pub(crate) struct DoorClock {
    clock: Arc<dyn Clock>,
    judge: Mutex<ClockJudge>,
}

impl DoorClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let judge = Mutex::new(ClockJudge { reference: clock.now() });
        Self { clock, judge }
    }

    /// Unix seconds; `None` while the wall clock is not where it should be. Nothing is refused by
    /// such a clock: the leader judges by its own.
    pub(crate) fn seconds(&self) -> Option<u64> {
        let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        judge.seconds(self.clock.now()).ok()
    }

    /// What the wall clock says, in Unix seconds.
    pub(crate) fn wall_seconds(&self) -> u64 {
        self.clock.now().wall.as_secs()
    }
}
