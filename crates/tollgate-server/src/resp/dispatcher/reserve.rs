//! Reservations: `TG.RESERVE`, `TG.EXTEND`, `TG.SETTLE`.

use std::time::Instant;

use tollgate::limiter::{DecisionRequest, Reservation};
use tollgate::limiter::{Extended, HoldOutcome, RedeemError, Settled, SettledLimit};
use tollgate::model::policy::NamedPlan;
use tollgate::model::{Cost, Limit, Millis, Store};

use super::Dispatcher;
use crate::resp::args::Args;
use crate::resp::reply::Replies;
use crate::resp::tg_commands;

impl<S: Store + 'static, D, F: Future> Dispatcher<'_, S, D, F> {
    /// Executes `TG.RESERVE` with the arguments `limit[,limit…] cost hold_ms [dimension value]…`.
    pub(super) async fn reserve(&mut self, args: &Args<'_>) {
        let policy = self.limiter.policy();
        let hold_for = match tg_commands::units(args[3], "time") {
            Ok(millis) => Millis::new(millis.get()),
            Err(error) => return self.replies.error(error),
        };
        let charge_args: Vec<&[u8]> = [&args[1..3], &args[4..]].concat();
        let plan = tg_commands::charge(&policy, &charge_args, self.limiter.key());
        let NamedPlan { planned, on_failure } = match plan {
            Ok(plan) => plan,
            Err(error) => return self.replies.error(error),
        };
        let now = self.limiter.now();
        let request = DecisionRequest::of_charges(now, &policy, planned, on_failure);
        let reservation = Reservation::All(hold_for);
        let request = DecisionRequest { reservation, ..request };
        let began = Instant::now();
        let mut decision = self.limiter.decide_or_release(request).await;
        self.in_flight.record(began);
        let sealed = decision.receipt.take().map(|receipt| self.limiter.seal(receipt, now));
        tg_commands::reply(&decision, sealed, &mut self.replies);
    }

    /// Executes `TG.EXTEND` with the arguments `receipt hold_ms`.
    pub(super) async fn extend(&mut self, args: &Args<'_>) {
        let hold_for = match tg_commands::units(args[2], "time") {
            Ok(millis) => Millis::new(millis.get()),
            Err(error) => return self.replies.error(error),
        };
        let (now, text) = (self.limiter.now(), String::from_utf8_lossy(args[1]));
        let extended = self.limiter.extend_at(now, &text, hold_for).await;
        reply_extended(&extended, &mut self.replies);
    }

    /// Executes `TG.SETTLE` with the arguments `receipt cost` for every limit, or
    /// `receipt limit cost [limit cost]…`.
    pub(super) async fn settle(&mut self, args: &Args<'_>) {
        let costs = match costs(&args[2..]) {
            Ok(costs) => costs,
            Err(error) => return self.replies.error(error),
        };
        let real = |limit: &Limit, held: Cost| match &costs {
            Costs::All(cost) => *cost,
            Costs::Named(named) => {
                let is_it = |(name, _): &&(&str, Cost)| *name == limit.name();
                named.iter().find(is_it).map_or(held, |(_, cost)| *cost)
            }
        };
        if let Costs::Named(named) = &costs
            && let Some(error) = tg_commands::unknown_limit(&self.limiter.policy(), named)
        {
            return self.replies.error(error);
        }
        let (now, text) = (self.limiter.now(), String::from_utf8_lossy(args[1]));
        let settled = self.limiter.settle_at(now, &text, real).await;
        reply_settled(&settled, &mut self.replies);
    }
}

/// The actual cost of a request.
enum Costs<'a> {
    /// The same cost on every limit.
    All(Cost),
    /// The costs on the named limits. On every other limit, the cost is the units that are reserved
    /// on it.
    Named(Vec<(&'a str, Cost)>),
}

fn costs<'a>(args: &[&'a [u8]]) -> Result<Costs<'a>, String> {
    if let [cost] = args {
        return tg_commands::units(cost, "cost").map(Costs::All);
    }
    let (pairs, rest) = args.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("ERR a limit has no cost: write limit and cost in turn".to_owned());
    }
    let pair = |[name, cost]: &[&'a [u8]; 2]| {
        Ok((tg_commands::text(name, "limit")?, tg_commands::units(cost, "cost")?))
    };
    pairs.iter().map(pair).collect::<Result<_, String>>().map(Costs::Named)
}

fn reply_extended(extended: &Result<Extended, RedeemError>, replies: &mut Replies) {
    let extended = match extended {
        Ok(extended) => extended,
        Err(error) => return replies.error(format!("ERR {error}")),
    };
    replies.map(4);
    replies.bulk("outcome");
    replies.bulk(match extended.outcome {
        HoldOutcome::Done => "extended",
        HoldOutcome::Unchanged => "unchanged",
        HoldOutcome::Expired => "expired",
    });
    replies.bulk("expires_at_ms");
    match &extended.receipt {
        // The time is at most 2^53, so the cast is exact.
        Some(_) => replies.integer(extended.until.as_millis() as i64),
        None => replies.nothing(),
    }
    replies.bulk("receipt");
    match &extended.receipt {
        Some(receipt) => replies.bulk(receipt),
        None => replies.nothing(),
    }
    replies.bulk("statuses");
    tg_commands::reply_each(&extended.statuses, replies);
}

fn reply_settled(settled: &Result<Settled, RedeemError>, replies: &mut Replies) {
    let settled = match settled {
        Ok(settled) => settled,
        Err(error) => return replies.error(format!("ERR {error}")),
    };
    replies.map(2);
    replies.bulk("outcome");
    replies.bulk(match settled.outcome {
        HoldOutcome::Done => "settled",
        HoldOutcome::Unchanged => "unchanged",
        HoldOutcome::Expired => "expired",
    });
    replies.bulk("limits");
    replies.array(settled.limits.len());
    for SettledLimit { refunded, added, status: limit_status } in &settled.limits {
        replies.map(4);
        replies.bulk("limit");
        replies.bulk(limit_status.limit.name());
        let numbers =
            [("refunded", *refunded), ("added", *added), ("remaining", limit_status.remaining)];
        for (name, number) in numbers {
            replies.bulk(name);
            replies.integer(number as i64);
        }
    }
}
