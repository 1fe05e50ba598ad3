//! Claiming and raising a pin over registers that several processes write, without a lock.
//!
//! Each epoch that claims the pin has a register of its own, which it creates and which no other epoch ever
//! writes. The pin is the largest head of all registers, in the newest epoch. A lock would do as well, until its
//! holder is paused: with registers, a writer that resumes late writes only its own, and then finds that a newer
//! epoch has claimed the pin.
//!
//! Both operations write their register first and read the others afterwards. Of a raise and a newer claim that
//! happen at once, at least one therefore sees the other: either the raise is refused, and its head is not signed;
//! or the claim finds a larger head than it was made with, and is refused.

use super::{Pin, PinError};

/// Registers of one log's pin.
pub(crate) trait Registers {
    /// Reads the register of each epoch that claimed the pin and was not removed.
    fn all(&self) -> Result<Vec<Pin>, PinError>;

    /// Creates the register of `pin.epoch`, durably; `false` if it exists.
    fn create(&self, pin: &Pin) -> Result<bool, PinError>;

    /// Writes the existing register of `pin.epoch`, durably.
    fn write(&self, pin: &Pin) -> Result<(), PinError>;

    /// Removes the register of an epoch.
    fn remove(&self, epoch: u64) -> Result<(), PinError>;
}

/// Computes the pin of these registers: the largest head, in the newest epoch.
pub(crate) fn newest(registers: &[Pin]) -> Result<Option<Pin>, PinError> {
    let Some(largest) = registers.iter().max_by_key(|pin| (pin.size, pin.epoch)) else { return Ok(None) };
    for other in registers {
        other.allows(largest)?;
    }
    let epoch = registers.iter().map(|pin| pin.epoch).max().unwrap_or(largest.epoch);
    Ok(Some(Pin { epoch, ..largest.clone() }))
}

/// Claim or raise in progress.
#[derive(Debug)]
pub(crate) struct Operation {
    pin: Pin,
    claims: bool,
    step: PinStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PinStep {
    Compare,
    Write,
    Verify,
    Tidy,
    Done,
}

impl Operation {
    /// Begins a claim of the pin for its epoch.
    pub(crate) fn claim(pin: &Pin) -> Self {
        Self { pin: pin.clone(), claims: true, step: PinStep::Compare }
    }

    /// Begins a raise in the epoch that claimed the pin.
    pub(crate) fn raise(pin: &Pin) -> Self {
        Self { pin: pin.clone(), claims: false, step: PinStep::Compare }
    }

    /// Returns whether the next step is the write.
    pub(crate) fn is_about_to_write(&self) -> bool {
        self.step == PinStep::Write
    }

    /// Performs one step; the process may be paused, or end, between any two. Returns whether it was the last.
    pub(crate) fn step(&mut self, registers: &impl Registers) -> Result<bool, PinError> {
        self.step = match self.step {
            PinStep::Compare => self.compare(&registers.all()?)?,
            PinStep::Write => self.write(registers)?,
            PinStep::Verify => self.verify(&registers.all()?)?,
            PinStep::Tidy => self.tidy(registers)?,
            PinStep::Done => PinStep::Done,
        };
        Ok(self.step == PinStep::Done)
    }

    fn compare(&self, all: &[Pin]) -> Result<PinStep, PinError> {
        let newest = newest(all)?;
        match newest {
            Some(newest) if self.claims && newest.epoch >= self.pin.epoch => {
                Err(PinError::Superseded(newest.epoch))
            }
            None if !self.claims => Err(PinError::Superseded(0)),
            Some(newest) => self.may_follow(&newest).map(|()| PinStep::Write),
            None => Ok(PinStep::Write),
        }
    }

    fn may_follow(&self, newest: &Pin) -> Result<(), PinError> {
        match newest.epoch > self.pin.epoch {
            true => Err(PinError::Superseded(newest.epoch)),
            false => newest.allows(&self.pin),
        }
    }

    fn write(&self, registers: &impl Registers) -> Result<PinStep, PinError> {
        match self.claims {
            true if !registers.create(&self.pin)? => return Err(PinError::Superseded(self.pin.epoch)),
            true => {}
            false => registers.write(&self.pin)?,
        }
        Ok(PinStep::Verify)
    }

    /// Reads the registers after the write: earlier writes of others are seen here, and later writers see this
    /// register.
    fn verify(&self, all: &[Pin]) -> Result<PinStep, PinError> {
        let newest = newest(all)?.ok_or(PinError::Superseded(0))?;
        self.may_follow(&newest)?;
        Ok(if self.claims { PinStep::Tidy } else { PinStep::Done })
    }

    /// Removes the registers of older epochs, which this one supersedes.
    fn tidy(&self, registers: &impl Registers) -> Result<PinStep, PinError> {
        for old in registers.all()?.iter().filter(|old| old.epoch < self.pin.epoch) {
            registers.remove(old.epoch)?;
        }
        Ok(PinStep::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use merkle::{RootHash, TreeSize};
    use proptest::prelude::*;

    use super::*;

    /// Registers in memory.
    #[derive(Default)]
    struct Cells(RefCell<BTreeMap<u64, Pin>>);

    impl Registers for Cells {
        fn all(&self) -> Result<Vec<Pin>, PinError> {
            Ok(self.0.borrow().values().cloned().collect())
        }

        fn create(&self, pin: &Pin) -> Result<bool, PinError> {
            let mut cells = self.0.borrow_mut();
            let free = !cells.contains_key(&pin.epoch);
            cells.entry(pin.epoch).or_insert_with(|| pin.clone());
            Ok(free)
        }

        fn write(&self, pin: &Pin) -> Result<(), PinError> {
            match self.0.borrow_mut().get_mut(&pin.epoch) {
                Some(cell) => *cell = pin.clone(),
                None => return Err(PinError::Superseded(pin.epoch)),
            }
            Ok(())
        }

        fn remove(&self, epoch: u64) -> Result<(), PinError> {
            self.0.borrow_mut().remove(&epoch);
            Ok(())
        }
    }

    fn pin(size: u64, epoch: u64) -> Pin {
        let root = RootHash::from_bytes([size as u8; 32]);
        Pin { origin: "log.example".into(), size: TreeSize::new(size), root, epoch }
    }

    fn run(cells: &Cells, mut operation: Operation) -> Result<(), PinError> {
        while !operation.step(cells)? {}
        Ok(())
    }

    #[test]
    fn r31_a_raise_that_is_paused_at_any_step_keeps_no_claim_waiting_and_never_lowers_the_pin() {
        for steps in 0..3 {
            let cells = Cells::default();
            run(&cells, Operation::claim(&pin(1, 1))).unwrap();
            let mut paused = Operation::raise(&pin(2, 1));
            (0..steps).for_each(|_| assert!(!paused.step(&cells).unwrap()));
            // The next leader reads the committed head, and continues.
            run(&cells, Operation::claim(&pin(2, 2))).unwrap();
            run(&cells, Operation::raise(&pin(3, 2))).unwrap();
            let late = loop {
                match paused.step(&cells) {
                    Ok(false) => {}
                    ended => break ended,
                }
            };
            assert!(matches!(late, Err(PinError::Superseded(_))), "paused after {steps}: {late:?}");
            assert_eq!(newest(&cells.all().unwrap()).unwrap(), Some(pin(3, 2)));
        }
    }

    #[test]
    fn an_epoch_claims_once_and_an_older_one_never_again() {
        let cells = Cells::default();
        assert!(run(&cells, Operation::raise(&pin(1, 1))).is_err(), "nobody has claimed it");
        run(&cells, Operation::claim(&pin(1, 2))).unwrap();
        for epoch in [1, 2] {
            assert!(matches!(run(&cells, Operation::claim(&pin(1, epoch))), Err(PinError::Superseded(2))));
        }
        assert!(matches!(run(&cells, Operation::raise(&pin(2, 1))), Err(PinError::Superseded(2))));
        assert!(matches!(run(&cells, Operation::claim(&pin(0, 3))), Err(PinError::Ahead(_))));
    }

    proptest! {
        /// Runs two epochs, one after the other in the database, which may have been restored from an old copy
        /// between them: at most one of two heads of one size is ever signed, in any order of the steps.
        #[test]
        fn of_two_heads_of_one_size_at_most_one_is_signed(order in proptest::collection::vec(any::<bool>(), 12)) {
            let cells = Cells::default();
            run(&cells, Operation::claim(&pin(1, 1))).unwrap();
            let other = Pin { root: RootHash::from_bytes([99; 32]), ..pin(2, 2) };
            let mut old = vec![Operation::raise(&pin(2, 1))];
            let mut new = vec![Operation::claim(&pin(1, 2)), Operation::raise(&other)];
            let (mut signed_old, mut signed_new) = (false, false);
            for old_moves in order.into_iter().chain([true; 8]).chain([false; 8]) {
                let (side, signed) = if old_moves { (&mut old, &mut signed_old) } else { (&mut new, &mut signed_new) };
                let Some(operation) = side.first_mut() else { continue };
                match operation.step(&cells) {
                    Ok(false) => {}
                    Ok(true) => {
                        side.remove(0);
                        *signed = side.is_empty();
                    }
                    Err(_) => side.clear(),
                }
            }
            prop_assert!(!(signed_old && signed_new), "two roots of size 2 are signed");
            let stands = newest(&cells.all().unwrap());
            if signed_old || signed_new {
                prop_assert!(stands.unwrap().unwrap().size == TreeSize::new(2), "the pin is behind a signature");
            }
        }
    }
}
