/* The machine {{name}}: greets whoever calls it, and counts how often it did. */
#include <tenure.h>

/* Runs once when the machine starts. */
TENURE_EXPORT(entry) {
    tenure_info("{{name}} has started");
}

/* tenure call {{name}} greet Ada */
TENURE_EXPORT(greet) {
    char *whom = tenure_parameter(NULL);
    char *before = tenure_tree_get("greetings", NULL);
    int count = (before ? atoi(before) : 0) + 1;

    char text[12];
    snprintf(text, sizeof text, "%d", count);
    tenure_tree_set_text("greetings", text);

    char greeting[96];
    snprintf(greeting, sizeof greeting, "Hello, %.40s! You are number %d.", whom ? whom : "world", count);
    tenure_reply_text(greeting);
    free(before);
    free(whom);
}
