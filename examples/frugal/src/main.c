/* Sheds what is unimportant before its budget is spent, so that an alarm finds room. */
#include <tenure.h>

/* The messages that are kept for alarms. */
#define KEPT_FOR_ALARMS 3

static unsigned shed;

/* Publishes a reading if there is room for more than alarms: tenure call frugal reading 21 */
TENURE_EXPORT(reading) {
    if (tenure_budget_left(TENURE_BUDGET_MESSAGES) <= KEPT_FOR_ALARMS) {
        shed++;
        tenure_reply_text("shed");
        return;
    }
    char *text = tenure_parameter(NULL);
    int heard = tenure_publish_text("frugal.reading", text ? text : "");
    free(text);
    tenure_reply_text(heard < 0 ? tenure_error_text(heard) : "published");
}

/* Publishes an alarm: tenure call frugal alarm "too hot" */
TENURE_EXPORT(alarm) {
    char *text = tenure_parameter(NULL);
    int heard = tenure_publish_text("frugal.reading", text ? text : "alarm");
    free(text);
    tenure_reply_text(heard < 0 ? tenure_error_text(heard) : "published");
}

/* Publishes readings until one is shed, and says how many went: tenure call frugal flood */
TENURE_EXPORT(flood) {
    unsigned published = 0;
    while (tenure_budget_left(TENURE_BUDGET_MESSAGES) > KEPT_FOR_ALARMS &&
           tenure_publish_text("frugal.reading", "21") >= 0) {
        published++;
    }
    char digits[16];
    snprintf(digits, sizeof digits, "%u", published);
    tenure_reply_text(digits);
}
