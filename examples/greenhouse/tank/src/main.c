/* Gives water by the litre. The rest stands in the tree, so that a loss of power gives nothing twice. */
#include <tenure.h>

static long litres(void) {
    char *text = tenure_tree_get("litres", NULL);
    long litres = text ? strtol(text, NULL, 10) : 0;
    free(text);
    return litres;
}

/* Keeps what is left, and replies with it. */
static void keep(long left) {
    char text[16];
    snprintf(text, sizeof text, "%ld", left);
    int error = tenure_tree_set_text("litres", text);
    if (error < 0)
        tenure_fail("can't keep %s: %s", text, tenure_error_text(error));
    else
        tenure_reply_text(text);
}

static long parameter(void) {
    char *text = tenure_parameter(NULL);
    long number = text ? strtol(text, NULL, 10) : 0;
    free(text);
    return number;
}

/* A bed takes that many litres. */
TENURE_EXPORT(take) {
    long wanted = parameter(), left = litres();
    if (wanted < 1 || wanted > left) {
        tenure_fail("%ld litres wanted, %ld left", wanted, left);
        return;
    }
    keep(left - wanted);
}

/* tenure call tank fill 100 */
TENURE_EXPORT(fill) {
    long more = parameter();
    if (more < 1 || more > 1000) {
        tenure_fail("no such bucket");
        return;
    }
    keep(litres() + more);
}

/* tenure call tank left */
TENURE_EXPORT(left) {
    char text[16];
    snprintf(text, sizeof text, "%ld", litres());
    tenure_reply_text(text);
}
