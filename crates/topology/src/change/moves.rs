//! Moves: planned, copied, cut over, committed; or given up.

use super::*;

impl Topology {
    pub(super) fn plan_moves(&mut self, moves: &[NewMove]) -> Result<(), Refused> {
        if moves.is_empty() {
            return Err(Refused::invalid("no moves are named".to_string(), "name at least one"));
        }
        for new in moves {
            self.plan_move(new)?;
        }
        if self.open_moves().count() > MAX_OPEN_MOVES {
            return Err(Refused::conflict(
                format!("there would be over {MAX_OPEN_MOVES} open moves"),
                "put slots of the same groups in one move, or wait for some to end",
            ));
        }
        Ok(())
    }

    fn plan_move(&mut self, new: &NewMove) -> Result<(), Refused> {
        self.fits(&new.slots)?;
        if new.from == new.to {
            return Err(Refused::invalid(
                format!("group {} is both source and target", new.from),
                "name two different groups",
            ));
        }
        let from = self.group(new.from).ok_or_else(|| no_group(new.from))?;
        let to = self.group(new.to).ok_or_else(|| no_group(new.to))?;
        if let Some(slot) = new.slots.difference(&from.slots).first() {
            return Err(Refused::conflict(
                format!("slot {slot} does not belong to group {}", new.from),
                "name slots that the source owns (see /slots)",
            ));
        }
        if to.primary().is_none() {
            return Err(Refused::conflict(format!("group {} has no server", new.to), "add a server to it first"));
        }
        self.refuse_moving_slots(&new.slots)?;
        let id = self.next_move;
        self.next_move = MoveId(id.0.checked_add(1).ok_or_else(|| exhausted("numbers of moves"))?);
        self.moves.push(Move {
            id,
            from: new.from,
            to: new.to,
            slots: new.slots.clone(),
            stage: Stage::Planned,
            paused: false,
            unsettled: false,
            source_run: None,
            target_run: None,
            rate: new.rate,
            attempts: 0,
            thaws: 0,
            committed_epoch: None,
            reason: String::new(),
        });
        Ok(())
    }

    pub(super) fn start_copy(&mut self, id: MoveId, source_run: &str, target_run: &str) -> Result<(), Refused> {
        let one = self.move_at(id, &[Stage::Planned])?;
        if one.paused {
            return Err(Refused::conflict(format!("move {id} is paused"), "resume it first"));
        }
        for run in [source_run, target_run] {
            if run.is_empty() || run.len() > 64 || !run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Refused::invalid(
                    format!("'{}' is no incarnation", run.escape_debug()),
                    "a member says its own: 40 hex digits",
                ));
            }
        }
        one.stage = Stage::Copying;
        one.source_run = Some(source_run.to_string());
        one.target_run = Some(target_run.to_string());
        one.attempts = one.attempts.saturating_add(1);
        Ok(())
    }

    pub(super) fn begin_cutover(&mut self, id: MoveId) -> Result<(), Refused> {
        let one = self.move_at(id, &[Stage::Copying])?;
        if one.paused {
            return Err(Refused::conflict(format!("move {id} is paused"), "resume it first"));
        }
        one.stage = Stage::Cutover;
        Ok(())
    }

    pub(super) fn thaw(&mut self, id: MoveId, reason: &str) -> Result<(), Refused> {
        let one = self.move_at(id, &[Stage::Cutover])?;
        one.stage = Stage::Copying;
        one.thaws = one.thaws.saturating_add(1);
        one.reason = shortened(reason);
        Ok(())
    }

    pub(super) fn restart(&mut self, id: MoveId, reason: &str) -> Result<(), Refused> {
        let one = self.move_at(id, &[Stage::Copying, Stage::Cutover])?;
        back_to_planned(one, reason);
        Ok(())
    }

    pub(super) fn commit(&mut self, id: MoveId, runs: (&str, &str), cutover: (u32, u32)) -> Result<(), Refused> {
        let (source_run, target_run) = runs;
        let epoch = self.epoch;
        let one = self.move_at(id, &[Stage::Cutover])?;
        if one.source_run.as_deref() != Some(source_run) || one.target_run.as_deref() != Some(target_run) {
            return Err(Refused::conflict(
                format!("source or target of move {id} is another incarnation than the one that copied"),
                "begin the copy anew",
            ));
        }
        if (one.attempts, one.thaws) != cutover {
            return Err(Refused::conflict(
                format!("the slots of move {id} were held for an earlier cut-over"),
                "have them held again",
            ));
        }
        one.stage = Stage::Committed;
        one.committed_epoch = Some(epoch);
        one.reason = String::new();
        let (from, to, slots) = (one.from, one.to, one.slots.clone());
        let source = self.group_mut(from)?;
        source.slots = source.slots.difference(&slots);
        source.epoch = epoch;
        let target = self.group_mut(to)?;
        target.slots = target.slots.union(&slots);
        target.epoch = epoch;
        Ok(())
    }

    pub(super) fn finish(&mut self, id: MoveId) -> Result<(), Refused> {
        self.move_at(id, &[Stage::Committed])?.stage = Stage::Done;
        self.forget_old_moves();
        Ok(())
    }

    pub(super) fn give_up(&mut self, id: MoveId, stage: Stage, reason: &str) -> Result<(), Refused> {
        let one = self.move_at(id, &[Stage::Planned, Stage::Copying, Stage::Cutover])?;
        // A move that was never begun is known to nobody.
        one.unsettled = one.attempts > 0;
        one.stage = stage;
        if !reason.is_empty() {
            one.reason = shortened(reason);
        }
        self.forget_old_moves();
        Ok(())
    }

    pub(super) fn settle(&mut self, id: MoveId) -> Result<(), Refused> {
        self.move_at(id, &[Stage::Cancelled, Stage::Failed])?.unsettled = false;
        self.forget_old_moves();
        Ok(())
    }

    pub(super) fn set_paused(&mut self, id: MoveId, paused: bool) -> Result<(), Refused> {
        self.move_at(id, &[Stage::Planned, Stage::Copying])?.paused = paused;
        Ok(())
    }

    pub(super) fn set_rate(&mut self, id: MoveId, rate: u64) -> Result<(), Refused> {
        self.move_at(id, &[Stage::Planned, Stage::Copying, Stage::Cutover])?.rate = rate;
        Ok(())
    }

    /// The move, if it is in one of these stages.
    fn move_at(&mut self, id: MoveId, stages: &[Stage]) -> Result<&mut Move, Refused> {
        let Some(one) = self.moves.iter_mut().find(|one| one.id == id) else {
            return Err(Refused::missing(format!("there is no move {id}"), "list them with /moves"));
        };
        if !stages.contains(&one.stage) {
            let names: Vec<&str> = stages.iter().map(|stage| stage.name()).collect();
            let hint = match one.stage {
                Stage::Committed => "it is decided: plan a move back instead",
                stage if stage.is_running() => "wait for its next stage, or cancel it",
                _ => "it has ended: plan a new move",
            };
            return Err(Refused::conflict(format!("move {id} is {}, not {}", one.stage, names.join(" or ")), hint));
        }
        Ok(one)
    }

    /// A group's primary is another one now: its copies begin anew. What is committed goes on; cut-overs are undone.
    pub(super) fn restart_copies_of(&mut self, group: GroupId, reason: &str) {
        let ends = |one: &&mut Move| one.from == group || one.to == group;
        let begun = |one: &&mut Move| matches!(one.stage, Stage::Copying | Stage::Cutover);
        for one in self.moves.iter_mut().filter(ends).filter(begun) {
            back_to_planned(one, reason);
        }
    }

    pub(super) fn refuse_while_moving(&self, group: GroupId) -> Result<(), Refused> {
        match self.open_moves().find(|one| one.from == group || one.to == group) {
            Some(one) => Err(Refused::conflict(
                format!("move {} ({}) has group {group} as its source or target", one.id, one.stage),
                "wait for its end, or cancel it",
            )),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_moving_slots(&self, slots: &SlotSet) -> Result<(), Refused> {
        match self.open_moves().find(|one| !one.slots.is_disjoint(slots)) {
            Some(one) => Err(Refused::conflict(
                format!("slots {} are in move {} ({})", one.slots.intersection(slots), one.id, one.stage),
                "wait for its end, or cancel it",
            )),
            None => Ok(()),
        }
    }

    /// Keeps the record small: of the moves that ended, only the last stay.
    fn forget_old_moves(&mut self) {
        let ended = self.moves.iter().filter(|one| !one.is_open()).count();
        let mut surplus = ended.saturating_sub(KEPT_MOVES);
        self.moves.retain(|one| {
            let goes = surplus > 0 && !one.is_open();
            surplus -= usize::from(goes);
            !goes
        });
    }
}

/// The most moves that are open at once.
pub const MAX_OPEN_MOVES: usize = 4_096;

fn back_to_planned(one: &mut Move, reason: &str) {
    one.stage = Stage::Planned;
    one.source_run = None;
    one.target_run = None;
    one.reason = shortened(reason);
}

/// What a peer said goes into the record, but not without end.
fn shortened(reason: &str) -> String {
    reason.chars().take(200).collect()
}
