/* The machine {{name}}: greets whoever calls it, and counts how often it did. */
#include <string>
#include <tenure.h>

/* Lives from call to call until the machine restarts; what must last longer belongs in the tree. */
static std::string greeting = "Hello, ";

/* Runs once when the machine starts. */
TENURE_EXPORT(entry) {
    tenure_info("{{name}} has started");
}

/* tenure call {{name}} greet Ada */
TENURE_EXPORT(greet) {
    char *whom = tenure_parameter(nullptr);
    char *before = tenure_tree_get("greetings", nullptr);
    const std::string count = std::to_string((before ? atoi(before) : 0) + 1);
    tenure_tree_set_text("greetings", count.c_str());

    const std::string answer = greeting + (whom ? whom : "world") + "! You are number " + count + ".";
    tenure_reply_text(answer.c_str());
    free(before);
    free(whom);
}
