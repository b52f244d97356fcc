/* Publishes what it is told, and says it again. */
#include <tenure.h>

/* What was said last; null before. */
TENURE_EXPORT(said) {
    size_t length = 0;
    void *text = tenure_tree_get("said", &length);
    if (text) {
        tenure_reply(text, length);
    }
}

TENURE_EXPORT(say) {
    size_t length = 0;
    char *text = tenure_parameter(&length);
    tenure_tree_set("said", text, length);
    tenure_publish("hall.board", text, length);
}

/* Takes longer than anybody waits for an acknowledgement. */
TENURE_EXPORT(ponder) {
    tenure_sleep_ms(2500);
    tenure_reply_text("done");
}
