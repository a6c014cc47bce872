//! The rules of a fixed window, which are complete where nothing is given back.

use tollgate_core::algo::FixedWindow;

use super::super::window::Window;
use super::{Case, balance, interval, order, quota, refusal, reset};

pub(super) fn check(case: &mut Case<'_, '_>, limit: &FixedWindow) {
    let account = case.account;
    for epoch in &account.epochs {
        let windows = Window::all(account, epoch, limit, case.clocks);
        reset::check(case, limit, epoch, &windows);
        for window in &windows {
            case.report.windows += 1;
            quota::check(case, window);
            if window.is_saturated() {
                continue;
            }
            if window.has_refunds() || case.allowance.held + case.allowance.stranded > 0 {
                balance::check(case, window);
            } else {
                interval::check(case, window);
                order::check(case, window);
                refusal::check(case, window);
            }
        }
    }
}
