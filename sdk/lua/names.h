/* What the module "tenure" has: each name, and the C function of host.c. The compiler knows the names alone. */
#define TENURE_FUNCTIONS(X)                                                                                        \
    X(parameter, push_parameter)                                                                                   \
    X(reply, reply)                                                                                                \
    X(caller, caller)                                                                                              \
    X(stop, stop)                                                                                                  \
    X(secret, secret)                                                                                              \
    X(call, call)                                                                                                  \
    X(queue, queue)                                                                                                \
    X(callback_of, callback_of)                                                                                    \
    X(public_key, public_key)                                                                                      \
    X(resolve, resolve)                                                                                            \
    X(peers, peers)                                                                                                \
    X(uptime_us, uptime_us)                                                                                        \
    X(unix_time_s, unix_time_s)                                                                                    \
    X(sleep_ms, sleep_ms)                                                                                          \
    X(yield_now, yield_now)                                                                                        \
    X(random, random_bytes)                                                                                        \
    X(budget_left, budget_left)                                                                                    \
    X(raise_tier, raise_tier)

/* Its tables, with what each of them has. */
#define TENURE_TABLES(X)                                                                                           \
    X(log, TENURE_LOG)                                                                                             \
    X(tree, TENURE_TREE)                                                                                           \
    X(timers, TENURE_TIMERS)                                                                                       \
    X(events, TENURE_EVENTS)

#define TENURE_LOG(X) X(error, log_error) X(warning, log_warning) X(info, log_info) X(debug, log_debug)
#define TENURE_TREE(X) X(get, tree_get) X(set, tree_set) X(remove, tree_remove) X(list, tree_list)
#define TENURE_TIMERS(X)                                                                                           \
    X(after, timer_after)                                                                                          \
    X(every, timer_every)                                                                                          \
    X(at, timer_at)                                                                                                \
    X(schedule, timer_schedule)                                                                                    \
    X(cancel, timer_cancel)
#define TENURE_EVENTS(X)                                                                                           \
    X(publish, publish)                                                                                            \
    X(subscribe, subscribe)                                                                                        \
    X(unsubscribe, unsubscribe)                                                                                    \
    X(next, event_next)                                                                                            \
    X(topic, event_topic)                                                                                          \
    X(dropped, dropped)
