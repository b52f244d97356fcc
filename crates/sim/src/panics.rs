//! Panics, caught and put into words.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The last panic of this thread, while one is being caught here.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
    static CATCHING: RefCell<bool> = const { RefCell::new(false) };
}

/// Runs `act`; if it panics, gives message and place instead of printing them.
pub(crate) fn catch(act: impl FnOnce()) -> Result<(), String> {
    hook_once();
    CATCHING.set(true);
    // State that `act` leaves half done is only read, for the report.
    let outcome = catch_unwind(AssertUnwindSafe(act));
    CATCHING.set(false);
    outcome.map_err(|_| LAST.take().unwrap_or_default())
}

fn hook_once() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if CATCHING.with_borrow(|catching| *catching) {
                LAST.set(Some(info.to_string().replace('\n', " ")));
            } else {
                before(info);
            }
        }));
    });
}
