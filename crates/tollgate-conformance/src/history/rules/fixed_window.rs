//! The rules for a fixed window. For histories without refunds, these rules find every violation.

use tollgate_core::algo::FixedWindow;

use super::super::window::Window;
use super::{Case, balance, interval, leased, order, quota, refusal, reset};

pub(super) fn check(case: &mut Case<'_, '_>, limit: &FixedWindow) {
    let account = case.account;
    for epoch in &account.epochs {
        let mut windows = Window::all(account, epoch, limit, case.clocks);
        Window::join_cut(&mut windows, limit, |opened| case.is_cut(opened));
        reset::check(case, limit, epoch, &windows);
        for window in &windows {
            case.report.windows += 1;
            quota::check(case, window);
            if window.is_saturated() {
                continue;
            }
            if case.leased() > 0 {
                leased::check(case, window);
            } else if window.has_refunds() || case.allowance.held + case.allowance.unrefunded > 0 {
                balance::check(case, window);
            } else {
                interval::check(case, window);
                order::check(case, window);
                refusal::check(case, window);
            }
        }
    }
}
